/**
 * How the two sides of a link show each other that they know a secret, without telling it: each answers the other's fresh
 * number, and names its role, so that no answer can be sent back as one's own. What they tell of themselves is part of it.
 */
import { Buffer } from "node:buffer";
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { linkLimits } from "../limits.ts";
import { type Frame, frameBody, framed, type FrameReader, parseBody } from "./frames.ts";
import { type Seal, Sealing } from "./sealing.ts";

export const LINK_PROTOCOL = 1;

const hex = z.string().regex(/^[0-9a-f]{64}$/);
const challengeSchema = z.object({ link: z.int(), nonce: hex });
const claimSchema = z.object({ nonce: hex, proof: hex, hello: z.string() });
const consentSchema = z.object({ proof: hex, welcome: z.string() });

/** The other side is not who it has to be, or speaks another version. */
export class HandshakeError extends Error {
  override readonly name = "HandshakeError";
}

export interface HandshakeOptions {
  readonly conn: Pick<Deno.Conn, "write">;
  readonly reader: FrameReader;
  readonly secret: string;
  /** Whether all that follows is sealed, as it has to be on a network. */
  readonly sealed: boolean;
}

/** What came of a handshake. */
export interface Shaken {
  /** What the other side tells of itself: JSON, for the caller to check. */
  readonly told: unknown;
  /** `null`: nothing is sealed. */
  readonly seal: Seal | null;
}

/** The leader's side. `welcome` makes the answer to what a follower tells of itself, or throws. */
export async function receive(
  { conn, reader, secret, sealed }: HandshakeOptions,
  welcome: (hello: unknown) => object | Promise<object>,
): Promise<Shaken> {
  const ours = randomBytes(32).toString("hex");
  await write(conn, { link: LINK_PROTOCOL, nonce: ours });
  const { nonce, proof, hello } = claimSchema.parse((await read(reader)).message);
  if (!same(proof, prove(secret, ["follower", ours, nonce, hello]))) {
    throw new HandshakeError("The other side does not know the secret");
  }
  const told = JSON.parse(hello);
  const answer = JSON.stringify(await welcome(told));
  await write(conn, { proof: prove(secret, ["leader", ours, nonce, hello, answer]), welcome: answer });
  return { told, seal: sealed ? sealOf(secret, { ours, nonce, side: "leader" }) : null };
}

/** The follower's side. */
export async function greet(
  { conn, reader, secret, sealed }: HandshakeOptions,
  hello: object,
): Promise<Shaken> {
  const { link, nonce: theirs } = challengeSchema.parse((await read(reader)).message);
  if (link !== LINK_PROTOCOL) throw new HandshakeError(`The leader speaks version ${link} of the link`);
  const nonce = randomBytes(32).toString("hex");
  const text = JSON.stringify(hello);
  await write(conn, { nonce, proof: prove(secret, ["follower", theirs, nonce, text]), hello: text });
  const { proof, welcome } = consentSchema.parse((await read(reader, WELCOME_BYTES_MAX)).message);
  if (!same(proof, prove(secret, ["leader", theirs, nonce, text, welcome]))) {
    throw new HandshakeError("The other side does not know the secret");
  }
  const seal = sealed ? sealOf(secret, { ours: theirs, nonce, side: "follower" }) : null;
  return { told: JSON.parse(welcome), seal };
}

/** A welcome names all functions of the app. */
const WELCOME_BYTES_MAX = 16_777_216;

function sealOf(
  secret: string,
  { ours, nonce, side }: {
    readonly ours: string;
    readonly nonce: string;
    readonly side: "leader" | "follower";
  },
): Seal {
  const keyOf = (from: string) =>
    createHmac("sha256", secret).update(`key ${from} ${ours} ${nonce}`).digest();
  const [leaders, followers] = [keyOf("leader"), keyOf("follower")];
  return side === "leader"
    ? new Sealing({ sends: leaders, receives: followers })
    : new Sealing({ sends: followers, receives: leaders });
}

function prove(secret: string, parts: readonly string[]): string {
  return createHmac("sha256", secret).update(JSON.stringify(["syncline-link", ...parts])).digest("hex");
}

function same(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}

async function read(reader: FrameReader, bytesMax: number = linkLimits.handshakeBytesMax): Promise<Frame> {
  const body = await reader.next(bytesMax);
  if (body === null) throw new HandshakeError("The other side has closed the connection");
  return parseBody(body);
}

async function write(conn: Pick<Deno.Conn, "write">, message: object): Promise<void> {
  const bytes = framed(frameBody(message));
  for (let sent = 0; sent < bytes.length;) sent += await conn.write(bytes.subarray(sent));
}
