/** What two servers of one data folder say to each other when one takes over from the other: JSON, a message a line. */
import { z } from "zod";

/** Name of the socket in the data folder on which a server can be asked to give way. */
export const takeoverSocketFile = "takeover.sock";

/** Raised when an older server could not understand what a newer one says, or the other way round. */
export const TAKEOVER_PROTOCOL = 2;

/** From the new server, in this order. */
const fromSuccessor = z.discriminatedUnion("type", [
  z.object({ type: z.literal("ask"), protocol: z.int(), pid: z.int() }),
  /** Everything is ready but what needs the database. */
  z.object({ type: z.literal("letGo") }),
  /** The database is open and all is wired: the port is what is missing. */
  z.object({ type: z.literal("sharePort") }),
  /** It listens, and has a socket for what the old one still gets; with the key that one may call functions there. */
  z.object({ type: z.literal("serving"), socket: z.string(), key: z.string().min(1) }),
]);

/** From the old server: an answer to each, and at last its end. */
const fromPredecessor = z.discriminatedUnion("type", [
  z.object({ type: z.literal("here"), host: z.string(), port: z.int(), pid: z.int() }),
  /** Why it does not give way, or not now. */
  z.object({ type: z.literal("refused"), message: z.string() }),
  z.object({ type: z.literal("gone") }),
  /** Whether another process may listen beside it. */
  z.object({ type: z.literal("port"), shared: z.boolean() }),
  /** The data folder and the port are the new one's. */
  z.object({ type: z.literal("yours") }),
  /** It has let everything go and exits. */
  z.object({ type: z.literal("ended") }),
]);

export type FromSuccessor = z.infer<typeof fromSuccessor>;
export type FromPredecessor = z.infer<typeof fromPredecessor>;

/** Throws for what is no message. */
export function parseFromSuccessor(line: string): FromSuccessor {
  return fromSuccessor.parse(JSON.parse(line));
}

/** Throws for what is no message. */
export function parseFromPredecessor(line: string): FromPredecessor {
  return fromPredecessor.parse(JSON.parse(line));
}
