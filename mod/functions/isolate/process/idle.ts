/**
 * Finds handlers that wait for what can never happen. Queries and mutations have no timers and no network, so when the
 * event loop has nothing left to do while one is awaited, it would wait for ever; the runtime says so with a
 * `beforeunload` event, and the call fails at once instead of holding up the calls behind it.
 */

let giveUp: ((error: Error) => void) | null = null;

/** Starts to listen, before app code is loaded: app code must not be able to come first. */
export function watchIdle(): void {
  addEventListener("beforeunload", (event) => {
    if (giveUp === null) return;
    event.preventDefault();
    const reject = giveUp;
    giveUp = null;
    reject(
      new Error(
        "The handler awaits something that never happens: queries and mutations have no timers and no network, " +
          "so a promise can only be settled by ctx or by the handler itself",
      ),
    );
  });
}

/** Waits for a handler's promise, or until nothing can settle it any more. */
export function settleOrIdle(result: PromiseLike<unknown>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    giveUp = reject;
    result.then(
      (value) => {
        giveUp = null;
        resolve(value);
      },
      (error) => {
        giveUp = null;
        reject(error);
      },
    );
  });
}

/** Fails the handler that is waited for, if there is one. For hosts that cannot see an event loop run dry. */
export function giveUpWaiting(error: Error): void {
  const reject = giveUp;
  giveUp = null;
  reject?.(error);
}
