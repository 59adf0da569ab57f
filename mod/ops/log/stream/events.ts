/** Server-Sent Events of the log stream, as text. */
import type { LoggedRun } from "../run_record.ts";

/** A run; its id is what a reader that comes back names in `Last-Event-ID`. */
export function runEvent(run: LoggedRun): string {
  // JSON text has no line breaks of its own.
  return `id: ${run.id}\nevent: run\ndata: ${JSON.stringify(run)}\n\n`;
}

/** So many runs were left out at this place, because they came faster than they were read. */
export function missedEvent(count: number): string {
  return `event: missed\ndata: ${JSON.stringify({ count })}\n\n`;
}

/** Why the stream ends: the token's time is over, or its session has ended. */
export function endEvent(reason: "expired" | "revoked"): string {
  return `event: ${reason}\ndata: {}\n\n`;
}

/** A comment, which readers skip: the connection lives. */
export const heartbeat = ": \n\n";
