/** Creates endings of runs, and converts them to their wire form. */
import type { Ending } from "../../outcome.ts";
import type { WireOutcome } from "../../wire/messages.ts";
import { callError } from "./call_errors.ts";

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
