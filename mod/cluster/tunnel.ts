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

/** One of two connections between which bytes are carried. */
interface End {
  readonly conn: Deno.Conn;
  /** What has come, until the next read; `null`: it has ended. */
  read(): Promise<Uint8Array | null>;
  write(bytes: Uint8Array): Promise<void>;
}

/** Carries bytes both ways until both sides have ended, or it is aborted; closes both. Never rejects. */
export async function carry(
  near: Deno.Conn,
  { far, signal }: { readonly far: FarSide; readonly signal: AbortSignal },
): Promise<void> {
  await carryBetween(plain(near), { other: sealed(far), signal });
}

/** The same between two connections of this machine. */
export async function join(near: Deno.Conn, other: Deno.Conn): Promise<void> {
  await carryBetween(plain(near), { other: plain(other) });
}

/**
 * A side that has ended may have said something last, such as why it takes no more: the other side is told all of it, and
 * that it is the end, before both are closed, after a bounded time.
 */
async function carryBetween(
  one: End,
  { other, signal }: { readonly other: End; readonly signal?: AbortSignal },
): Promise<void> {
  const close = () => {
    closeQuietly(one.conn);
    closeQuietly(other.conn);
  };
  signal?.addEventListener("abort", close, { once: true });
  if (signal?.aborted) close();
  let late: ReturnType<typeof setTimeout> | undefined;
  const ending = () => late ??= setTimeout(close, linkLimits.lingerMs);
  // One of them is gone, or has sent what is not sealed as it must be: whoever asked finds the connection closed.
  await Promise.all([
    pass(one, { to: other, ending }).catch(close),
    pass(other, { to: one, ending }).catch(close),
  ]);
  clearTimeout(late);
  signal?.removeEventListener("abort", close);
  close();
}

/** One way, to its end. What the other side does not take any more is read all the same, or what it said last were lost. */
async function pass(
  from: End,
  { to, ending }: { readonly to: End; readonly ending: () => void },
): Promise<void> {
  let taken = true;
  for (let bytes = await from.read(); bytes !== null; bytes = await from.read()) {
    if (!taken) continue;
    try {
      await to.write(bytes);
    } catch {
      taken = false;
      ending();
    }
  }
  ending();
  await to.conn.closeWrite().catch(() => {});
}

function plain(conn: Deno.Conn): End {
  const chunk = new Uint8Array(linkLimits.tunnelChunkBytes);
  return {
    conn,
    async read() {
      // One that was closed with something unread breaks off instead of ending.
      const length = await conn.read(chunk).catch(() => null);
      return length === null ? null : chunk.subarray(0, length);
    },
    write: (bytes) => writeAll(conn, bytes),
  };
}

function sealed({ conn, reader, seal }: FarSide): End {
  return {
    conn,
    async read() {
      const body = await reader.next(linkLimits.tunnelChunkBytes + SEAL_BYTES_MAX);
      return body === null || seal === null ? body : seal.open(body);
    },
    write: (bytes) => writeAll(conn, framed(seal === null ? bytes : seal.seal(bytes))),
  };
}

/** What sealing adds to a frame at most. */
const SEAL_BYTES_MAX = 64;

async function writeAll(conn: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await conn.write(bytes.subarray(sent));
}
