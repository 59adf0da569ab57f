/** Messages between the old and the new process during a takeover: one JSON object a line. */
import { z } from "zod";

/** Name of the socket in the data folder that accepts takeovers. */
export const takeoverSocketFile = "takeover.sock";

/** Incremented when old and new processes could not understand each other. */
export const TAKEOVER_PROTOCOL = 2;

/** Messages of the new process, in this order. */
const fromSuccessor = z.discriminatedUnion("type", [
  z.object({ type: z.literal("ask"), protocol: z.int(), pid: z.int() }),
  /** Everything that does not need the database is ready. */
  z.object({ type: z.literal("letGo") }),
  /** The database is open and everything is connected, except for the port. */
  z.object({ type: z.literal("sharePort") }),
  /** It listens and accepts forwarded requests on `socket`, and function calls that carry `key`. */
  z.object({ type: z.literal("serving"), socket: z.string(), key: z.string().min(1) }),
]);

/** Messages of the old process: a response to each message, and `ended`. */
const fromPredecessor = z.discriminatedUnion("type", [
  z.object({ type: z.literal("here"), host: z.string(), port: z.int(), pid: z.int() }),
  /** The takeover is refused for now or entirely. */
  z.object({ type: z.literal("refused"), message: z.string() }),
  z.object({ type: z.literal("gone") }),
  /** Whether another process may listen on the port. */
  z.object({ type: z.literal("port"), shared: z.boolean() }),
  /** The data folder and the port belong to the new process. */
  z.object({ type: z.literal("yours") }),
  /** It has released everything and exits. */
  z.object({ type: z.literal("ended") }),
]);

export type NewProcessMessage = z.infer<typeof fromSuccessor>;
export type OldProcessMessage = z.infer<typeof fromPredecessor>;

/** Throws for an invalid message. */
export function parseNewProcessMessage(line: string): NewProcessMessage {
  return fromSuccessor.parse(JSON.parse(line));
}

/** Throws for an invalid message. */
export function parseOldProcessMessage(line: string): OldProcessMessage {
  return fromPredecessor.parse(JSON.parse(line));
}
