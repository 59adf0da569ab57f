/**
 * One function at a time: which call is running is a global of the code that runs functions, so the queries and mutations
 * of all test servers in this process take turns. Actions run beside them.
 */

let last: Promise<unknown> = Promise.resolve();

/** Runs `work` after everything that was asked for before it. */
export function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const result = last.then(work);
  last = result.catch(() => {});
  return result;
}
