/** The result of a run inside the isolate, before it is sent. */
import type { CallError } from "../../outcome.ts";
import type { WireOutcome } from "../../wire/messages.ts";
import { callError } from "./call_errors.ts";

/** A result as JSON, or an error. */
export type Ending =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly error: CallError };

/** The ending of a call that threw. */
export function endingOfError(thrown: unknown): Ending {
  return { ok: false, error: callError(thrown) };
}

/** Converts an ending to its wire form. A result is appended to the frame's segments. */
export function wireOutcome(
  ending: Ending,
  { logLines, segments }: { readonly logLines: readonly string[]; readonly segments: string[] },
): WireOutcome {
  if (!ending.ok) return { error: ending.error, logLines };
  segments.push(ending.text);
  return { value: segments.length - 1, logLines };
}
