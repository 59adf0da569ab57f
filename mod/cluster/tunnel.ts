/**
 * Requests that a follower passes on: the bytes of one connection of HTTP, carried between a local socket on either side.
 * On a network they are sealed, in frames. Who reads slowly holds up who writes, as on any connection.
 */
import { closeQuietly } from "../kit/local_socket.ts";
import { linkLimits } from "./limits.ts";
import { framed, type FrameReader } from "./link/frames.ts";
import type { Seal } from "./link/sealing.ts";

/** The connection to the other server, behind its handshake. */
export interface FarSide {
  readonly conn: Deno.Conn;
  readonly reader: FrameReader;
  readonly seal: Seal | null;
}

/** Carries bytes both ways until one side ends, or it is aborted; closes both. Never rejects. */
export async function carry(
  near: Deno.Conn,
  { far, signal }: { readonly far: FarSide; readonly signal: AbortSignal },
): Promise<void> {
  const close = () => {
    closeQuietly(near);
    closeQuietly(far.conn);
  };
  signal.addEventListener("abort", close, { once: true });
  if (signal.aborted) close();
  try {
    await Promise.race([send(near, far), receive(near, far)]);
  } catch {
    // One of them is gone, or has sent what is not sealed as it must be: whoever asked finds the connection closed.
  } finally {
    signal.removeEventListener("abort", close);
    close();
  }
}

async function send(near: Deno.Conn, { conn, seal }: FarSide): Promise<void> {
  const chunk = new Uint8Array(linkLimits.tunnelChunkBytes);
  for (;;) {
    const length = await near.read(chunk);
    if (length === null) return;
    const bytes = chunk.subarray(0, length);
    await writeAll(conn, framed(seal === null ? bytes : seal.seal(bytes)));
  }
}

async function receive(near: Deno.Conn, { reader, seal }: FarSide): Promise<void> {
  for (;;) {
    const body = await reader.next(linkLimits.tunnelChunkBytes + SEAL_BYTES_MAX);
    if (body === null) return;
    await writeAll(near, seal === null ? body : seal.open(body));
  }
}

/** What sealing adds to a frame at most. */
const SEAL_BYTES_MAX = 64;

async function writeAll(conn: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await conn.write(bytes.subarray(sent));
}
