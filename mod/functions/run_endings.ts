/** How runs of functions end, for those who count them or keep a log of them. */

/**
 * `user_error`: its caller is told why, wrong arguments included. `refused`: nothing of it has happened, as when a queue is
 * full. `error`: a bug, or a lost isolate.
 */
export const runEndings = ["success", "user_error", "error", "timeout", "refused"] as const;
export type RunEnding = (typeof runEndings)[number];
