/** Encodes server-sent events of the log stream. */
import type { LoggedRun } from "../run_record.ts";

/** A run. Its ID is sent back in `Last-Event-ID` on reconnect. */
export function runEvent(run: LoggedRun): string {
  // JSON contains no line breaks.
  return `id: ${run.id}\nevent: run\ndata: ${JSON.stringify(run)}\n\n`;
}

/** Number of runs skipped at this point, because the reader was too slow. */
export function missedEvent(count: number): string {
  return `event: missed\ndata: ${JSON.stringify({ count })}\n\n`;
}

/** Why the stream ends: the token has expired or the session has ended. */
export function endEvent(reason: "expired" | "revoked"): string {
  return `event: ${reason}\ndata: {}\n\n`;
}

/** A comment that keeps the connection alive. */
export const heartbeat = ": \n\n";
