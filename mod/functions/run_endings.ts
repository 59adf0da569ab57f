/** How runs of functions end, for metrics and the execution log. */

/** `user_error`: the caller sees the reason. `refused`: no effect (full queue). `error`: a bug or a lost isolate. */
export const runEndings = ["success", "user_error", "error", "timeout", "refused"] as const;
export type RunEnding = (typeof runEndings)[number];
