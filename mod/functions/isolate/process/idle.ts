/**
 * Detects handlers that await something that cannot happen. Queries and mutations have no timers and no network, so an empty
 * event loop means the handler would wait forever. The runtime then fires `beforeunload`, and the call fails immediately
 * instead of delaying the calls behind it.
 */

let rejectHandler: ((error: Error) => void) | null = null;

/** Registers the listener. Call before app code is loaded, so that app code cannot register first. */
export function watchIdle(): void {
  addEventListener("beforeunload", (event) => {
    if (rejectHandler === null) return;
    event.preventDefault();
    const reject = rejectHandler;
    rejectHandler = null;
    reject(
      new Error(
        "The handler awaits something that never happens: queries and mutations have no timers and no network, " +
          "so a promise can only be settled by ctx or by the handler itself",
      ),
    );
  });
}

/** Awaits a handler's promise. Rejects if nothing can settle it any more. */
export function settleOrIdle(result: PromiseLike<unknown>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    rejectHandler = reject;
    result.then(
      (value) => {
        rejectHandler = null;
        resolve(value);
      },
      (error) => {
        rejectHandler = null;
        reject(error);
      },
    );
  });
}

/** Fails the awaited handler, if any. For hosts that cannot detect an empty event loop. */
export function failWaitingHandler(error: Error): void {
  const reject = rejectHandler;
  rejectHandler = null;
  reject?.(error);
}
