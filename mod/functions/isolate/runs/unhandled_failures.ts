/**
 * Detects failed operations of `ctx` that were not awaited: their call must not succeed. The runtime reports rejections
 * without a handler at the end of an event loop tick. So calls with a failed operation wait for a tick, and others do not
 * wait at all.
 */

/** A running function that uses `ctx`. */
export interface ContextUser {
  /** Failed operations by the value thrown. `null` if there are none. */
  failures: Map<unknown, string> | null;
  /** Settles when the checks of the caller have ended. A run waits for them even if the app does not. `null`: none. */
  checks: Promise<unknown> | null;
}

/** A call, including all nested ones. */
export interface RejectionTracker {
  /** Unhandled rejections by promise. `null` if there are none. */
  lost: Map<object, unknown> | null;
}

/** Entries kept. A call with more fails all the same. */
const KEPT_MAX = 64;

// Captured before app code is loaded, which has no access to it.
const afterTurn: (run: () => void) => unknown = setImmediate;

/** Values thrown by operations. */
const thrownBefore = new WeakSet<object>();

/** Whether an operation of `ctx` threw this value. */
export function isFailure(thrown: unknown): boolean {
  return typeof thrown === "object" && thrown !== null && thrownBefore.has(thrown);
}

/** Records a failed operation. Returns the thrown value. */
export function failedAt(asker: ContextUser, operation: string, thrown: unknown): unknown {
  if (typeof thrown === "object" && thrown !== null) thrownBefore.add(thrown);
  const failures = asker.failures ??= new Map();
  if (failures.size < KEPT_MAX) failures.set(thrown, operation);
  return thrown;
}

/** The call of each unhandled rejection. The runtime reports late handlers outside of any call. */
const calls = new WeakMap<object, RejectionTracker>();

/** Handles `unhandledrejection`. */
export function markUnhandled(call: RejectionTracker, { promise, reason }: PromiseRejectionEvent): void {
  // App code can dispatch events with any content.
  if (!(promise instanceof Promise)) return;
  const lost = call.lost ??= new Map();
  if (lost.size >= KEPT_MAX) return;
  lost.set(promise, reason);
  calls.set(promise, call);
}

/** Handles `rejectionhandled`. */
export function markHandled({ promise }: PromiseRejectionEvent): void {
  calls.get(promise)?.lost?.delete(promise);
}

const CAUSES_MAX = 8;

/** Throws if a failed operation was not handled. `undone`: the writes are rolled back (not in actions). */
export async function checkTaken(
  asker: ContextUser,
  { call, undone }: { readonly call: RejectionTracker; readonly undone: boolean },
): Promise<void> {
  const { failures } = asker;
  if (failures === null) return;
  // The first tick reports earlier rejections. The second covers handlers attached during the first.
  for (let turns = 0; turns < 2; turns++) await new Promise<void>((resolve) => afterTurn(resolve));
  asker.failures = null;
  let failure: Error | null = null;
  for (const [promise, reason] of call.lost ?? []) {
    const operation = operationBehind(failures, reason);
    if (operation === undefined) continue;
    failure ??= lostFailure(operation, { reason, undone });
    // The caller receives this error and may continue.
    call.lost?.delete(promise);
  }
  if (failure !== null) throw failure;
}

/** Returns the operation that a rejection stems from. Other rejections are unrelated to `ctx`. */
function operationBehind(failures: ReadonlyMap<unknown, string>, reason: unknown): string | undefined {
  let thrown = reason;
  for (let depth = 0; depth < CAUSES_MAX; depth++) {
    const operation = failures.get(thrown);
    if (operation !== undefined || !(thrown instanceof Error)) return operation;
    thrown = thrown.cause;
  }
  return undefined;
}

function lostFailure(
  operation: string,
  { reason, undone }: { readonly reason: unknown; readonly undone: boolean },
): Error {
  const isError = reason instanceof Error;
  const error = new Error(
    `${operation} failed and was not awaited${undone ? ", so nothing was stored" : ""}: ${
      isError ? reason.message : String(reason)
    }`,
    { cause: reason },
  );
  // Points to where the operation was called.
  if (isError && typeof reason.stack === "string") error.stack = reason.stack;
  return error;
}
