/**
 * A mutex for queries and mutations of all test servers in a process: the running call is a global of the code that runs
 * functions. Actions run in parallel to them.
 */

let last: Promise<unknown> = Promise.resolve();

/** Runs `work` after all previously queued work. */
export function exclusively<T>(work: () => Promise<T>): Promise<T> {
  const result = last.then(work);
  last = result.catch(() => {});
  return result;
}
