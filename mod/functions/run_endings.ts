/** How runs of functions end, for metrics and the execution log. */

/**
 * `user_error`: the caller sees the reason, including invalid arguments. `refused`: it had no effect, for example because a
 * queue is full. `error`: a bug or a lost isolate.
 */
export const runEndings = ["success", "user_error", "error", "timeout", "refused"] as const;
export type RunEnding = (typeof runEndings)[number];
