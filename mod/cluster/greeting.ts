/** How a leader, or who is about to be one, hears who has connected, before anything is said on a link. */
import { FrameReader } from "./link/frames.ts";
import { receive } from "./link/handshake.ts";
import { type Hello, parseHello } from "./messages.ts";
import type { FarSide } from "./tunnel.ts";

/** A follower that knows the secret. */
export interface Greeted extends FarSide {
  readonly hello: Hello;
}

export interface GreetingOptions {
  readonly secret: string;
  readonly sealed: boolean;
  /** Called before the other side is told that it was let in: waited for, and it is not when this throws. */
  readonly passes: (hello: Hello) => Promise<void> | void;
}

/** Rejects for who is not let in; to close the connection is for the caller. */
export async function greetFollower(
  conn: Deno.Conn,
  { secret, sealed, passes }: GreetingOptions,
): Promise<Greeted> {
  const reader = new FrameReader(conn);
  let hello: Hello | undefined;
  const { seal } = await receive({ conn, reader, secret, sealed }, async (told) => {
    hello = parseHello(told);
    await passes(hello);
    return {};
  });
  if (hello === undefined) throw new TypeError("Nobody has said hello");
  return { conn, reader, seal, hello };
}
