/** The handshake of a link: the follower sends the cluster's secret and its name over TLS or the owner's Unix socket. */
import { createHash, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { linkLimits } from "./limits.ts";
import { type Frame, frameBody, framed, FrameReader, type LinkConn, parseBody, writeAll } from "./link.ts";

export const LINK_PROTOCOL = 3;

const helloSchema = z.object({
  protocol: z.int(),
  secret: z.string(),
  /** Name of the follower in logs and figures. */
  name: z.string().max(200),
  /** Whether the follower reads the leader's database and receives each commit. */
  commits: z.boolean(),
  /** Whether the connection carries HTTP requests instead of messages. */
  requests: z.literal(true).optional(),
});
const answerSchema = z.object({ protocol: z.int(), accepted: z.boolean() });

/** The first message of a follower, without the secret. */
export interface Hello {
  readonly name: string;
  readonly commits: boolean;
  readonly requests?: true;
}

/** The other side does not know the secret, speaks another version or has closed the connection. */
export class HandshakeError extends Error {
  override readonly name = "HandshakeError";
}

/** The follower's side. Rejects if the leader does not accept it; the caller closes the connection. */
export async function sendHello(conn: LinkConn, secret: string, hello: Hello): Promise<FrameReader> {
  const reader = new FrameReader(conn);
  await write(conn, { protocol: LINK_PROTOCOL, secret, ...hello });
  const { protocol, accepted } = answerSchema.parse((await read(reader)).message);
  if (protocol !== LINK_PROTOCOL) throw new HandshakeError(`The leader uses version ${protocol} of the link`);
  if (!accepted) throw new HandshakeError("The leader has another secret, or does not accept links now");
  return reader;
}

/** The leader's side. Rejects if the secret differs or `accepts` returns `false`; the caller closes the connection. */
export async function receiveHello(
  conn: LinkConn,
  { secret, accepts }: { readonly secret: string; readonly accepts: (hello: Hello) => boolean },
): Promise<{ readonly hello: Hello; readonly reader: FrameReader }> {
  const reader = new FrameReader(conn);
  const { secret: sent, protocol, name, commits, requests } = helloSchema.parse((await read(reader)).message);
  const hello: Hello = { name, commits, ...(requests === true && { requests }) };
  const known = protocol === LINK_PROTOCOL && timingSafeEqual(digest(sent), digest(secret));
  const accepted = known && accepts(hello);
  await write(conn, { protocol: LINK_PROTOCOL, accepted });
  if (!known) throw new HandshakeError("The other side has another secret or version");
  if (!accepted) throw new HandshakeError("This server does not accept links now");
  return { hello, reader };
}

function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}

async function read(reader: FrameReader): Promise<Frame> {
  const body = await reader.next(linkLimits.handshakeBytesMax);
  if (body === null) throw new HandshakeError("The other side has closed the connection");
  return parseBody(body);
}

async function write(conn: LinkConn, message: object): Promise<void> {
  await writeAll(conn, framed(frameBody(message)));
}
