import { setImmediate } from "node:timers";

/** Resolves after the event loop has run other pending work. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
