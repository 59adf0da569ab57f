/** Messages between the old and the new process during a takeover: one JSON object a line. */
import { z } from "zod";

/** Name of the socket in the data folder that accepts takeovers. */
export const takeoverSocketFile = "takeover.sock";

/** Incremented when old and new processes could not understand each other. */
export const TAKEOVER_PROTOCOL = 4;

/** Messages of the new process, in this order. */
const fromNewProcess = z.discriminatedUnion("type", [
  z.object({ type: z.literal("ask"), protocol: z.int(), pid: z.int() }),
  /** Everything that does not need the database is ready. It listens, if ports can be shared, and needs the data folder. */
  z.object({ type: z.literal("stepDown") }),
  /** It has the data folder and serves. */
  z.object({ type: z.literal("leading") }),
]);

/** Responses of the old process. `leading` has none. */
const fromOldProcess = z.discriminatedUnion("type", [
  z.object({ type: z.literal("here"), host: z.string(), port: z.int(), pid: z.int() }),
  /** The takeover is refused for now or entirely. */
  z.object({ type: z.literal("refused"), message: z.string() }),
  /** It has ended its backend and released the data folder. */
  z.object({ type: z.literal("released") }),
]);

export type NewProcessMessage = z.infer<typeof fromNewProcess>;
export type OldProcessMessage = z.infer<typeof fromOldProcess>;

/** Throws for an invalid message. */
export function parseNewProcessMessage(line: string): NewProcessMessage {
  return fromNewProcess.parse(JSON.parse(line));
}

/** Throws for an invalid message. */
export function parseOldProcessMessage(line: string): OldProcessMessage {
  return fromOldProcess.parse(JSON.parse(line));
}
