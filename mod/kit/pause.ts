/** Room for others between two pieces of work. */
import { setImmediate } from "node:timers";

/** Lets the process do what else there is to do. */
export function pause(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
