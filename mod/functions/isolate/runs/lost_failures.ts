/**
 * What `ctx` was asked to do, failed, and nobody awaited: such a call must not end as if it had been done. Who takes a
 * failure, and when, the runtime knows best: it tells of rejections that are still nobody's when the event loop turns. So a
 * call in which nothing failed waits for nothing, and one in which something did waits for one turn.
 */

/** What can ask `ctx` for something: a function on its way. */
export interface Asker {
  /** What failed, by what it threw, under its name; `null` while nothing has. */
  failures: Map<unknown, string> | null;
}

/** A call, with everything nested in it. */
export interface Losing {
  /** Rejections that nobody has taken, by their promises; `null` while there are none. */
  lost: Map<object, unknown> | null;
}

/** Kept of each; a call that loses more fails all the same. */
const KEPT_MAX = 64;

// Taken before app code is loaded, to which it is refused.
const afterTurn: (run: () => void) => unknown = setImmediate;

/** What operations threw. */
const thrownBefore = new WeakSet<object>();

/** Whether this is what an operation of `ctx` threw. */
export function isFailure(thrown: unknown): boolean {
  return typeof thrown === "object" && thrown !== null && thrownBefore.has(thrown);
}

/** Notes that an operation failed, and gives back what it threw. */
export function failedAt(asker: Asker, operation: string, thrown: unknown): unknown {
  if (typeof thrown === "object" && thrown !== null) thrownBefore.add(thrown);
  const failures = asker.failures ??= new Map();
  if (failures.size < KEPT_MAX) failures.set(thrown, operation);
  return thrown;
}

/** Whose a lost rejection is: the runtime tells outside of any call when it is taken after all. */
const calls = new WeakMap<object, Losing>();

/** To be told of each rejected promise that was nobody's when the event loop turned. */
export function noteLost(call: Losing, { promise, reason }: PromiseRejectionEvent): void {
  // App code can dispatch events of any content.
  if (!(promise instanceof Promise)) return;
  const lost = call.lost ??= new Map();
  if (lost.size >= KEPT_MAX) return;
  lost.set(promise, reason);
  calls.set(promise, call);
}

/** To be told when somebody takes one of them after all. */
export function noteTaken({ promise }: PromiseRejectionEvent): void {
  calls.get(promise)?.lost?.delete(promise);
}

/** How far back it is looked for what an error was made of. */
const CAUSES_MAX = 8;

/**
 * Throws when an operation of the asker failed and nobody took its failure, or an error that has it as its cause. `undone`:
 * the asker is not an action, so nothing of it is stored then.
 */
export async function checkTaken(
  asker: Asker,
  { call, undone }: { readonly call: Losing; readonly undone: boolean },
): Promise<void> {
  const { failures } = asker;
  if (failures === null) return;
  // One turn tells of what was rejected before it; the second is for what was taken up in the first.
  for (let turns = 0; turns < 2; turns++) await new Promise<void>((resolve) => afterTurn(resolve));
  asker.failures = null;
  let failure: Error | null = null;
  for (const [promise, reason] of call.lost ?? []) {
    const operation = operationBehind(failures, reason);
    if (operation === undefined) continue;
    failure ??= lostFailure(operation, { reason, undone });
    // Whoever called the asker is told of it, and may go on.
    call.lost?.delete(promise);
  }
  if (failure !== null) throw failure;
}

/** The operation whose failure this is, or goes back to; what else is rejected is not about `ctx`. */
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
  // It says where the operation was asked for.
  if (isError && typeof reason.stack === "string") error.stack = reason.stack;
  return error;
}
