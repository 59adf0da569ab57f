/** Copies bytes between two connections in both directions, with backpressure: HTTP requests that a follower forwards. */
import { closeQuietly } from "../kit/local_socket.ts";
import { linkLimits } from "./limits.ts";
import { type LinkConn, writeAll } from "./link.ts";

/** Resolves when both directions end (the second in bounded time) or on an abort; closes both. Never rejects. */
export async function relay(one: LinkConn, other: LinkConn, signal?: AbortSignal): Promise<void> {
  const close = () => {
    closeQuietly(one);
    closeQuietly(other);
  };
  signal?.addEventListener("abort", close, { once: true });
  if (signal?.aborted) close();
  let late: ReturnType<typeof setTimeout> | undefined;
  const ending = () => late ??= setTimeout(close, linkLimits.lingerMs);
  await Promise.all([
    copy(one, other, ending).catch(close),
    copy(other, one, ending).catch(close),
  ]);
  clearTimeout(late);
  signal?.removeEventListener("abort", close);
  close();
}

/** Copies one direction to its end. Continues to read when the target is closed: its response may still arrive. */
async function copy(from: LinkConn, to: LinkConn, ending: () => void): Promise<void> {
  const chunk = new Uint8Array(linkLimits.tunnelChunkBytes);
  let writable = true;
  for (;;) {
    // A connection that was closed with unread data breaks instead of ending.
    const length = await from.read(chunk).catch(() => null);
    if (length === null) break;
    if (!writable) continue;
    try {
      await writeAll(to, chunk.subarray(0, length));
    } catch {
      writable = false;
      ending();
    }
  }
  ending();
  await to.closeWrite().catch(() => {});
}
