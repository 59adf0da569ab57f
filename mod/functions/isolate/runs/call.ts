/** The state of a running call: what it may see and do, and what it has used. */
import { withHelp } from "../../../explained.ts";
import { AsyncLocalStorage } from "node:async_hooks";
import type { ReadTransaction, WriteTransaction } from "../../../engine/mod.ts";
import { functionLimits } from "../../../limits.ts";
import type { Lineage } from "../../api/system_context.ts";
import type { AuthScope, Identity } from "../../identity.ts";
import { LogLines } from "../ctx/log_lines.ts";
import type { Asker, Losing } from "./lost_failures.ts";
import { Undos } from "./undos.ts";

/** One call from outside, with everything nested in it. */
export class Call implements Losing {
  readonly udfPath: string;
  readonly identity: Identity;
  /** Its clock, milliseconds since the epoch: stands still in queries and mutations. */
  readonly at: number;
  /** The transaction it runs in; actions have none. */
  readonly reads: ReadTransaction | undefined;
  /** What the generator of a query is seeded from, so that a run repeated gives the same numbers; `null`: real chance. */
  readonly seed: (() => string) | null;
  readonly logLines: LogLines = new LogLines();
  /** How much was read of the identity; grows only. */
  scope: AuthScope = "nothing";
  /** Set when the run reads the clock or the generator. */
  nondeterministic = false;
  /** Made when first asked for (determinism.ts). */
  random: (() => number) | null = null;
  /** The scheduled function it goes back to. */
  lineage: Lineage | null;
  /** Those of its group, for mutations. */
  readonly undos: Undos;
  /** Rejections that nobody has taken (lost_failures.ts). */
  lost: Map<object, unknown> | null = null;

  constructor(
    options: {
      readonly udfPath: string;
      readonly identity: Identity;
      readonly at: number;
      readonly seed: (() => string) | null;
      readonly reads: ReadTransaction | undefined;
      readonly lineage?: Lineage | undefined;
      readonly undos?: Undos | undefined;
    },
  ) {
    this.udfPath = options.udfPath;
    this.identity = options.identity;
    this.at = options.at;
    this.seed = options.seed;
    this.reads = options.reads;
    this.lineage = options.lineage ?? null;
    this.undos = options.undos ?? new Undos();
  }
}

/**
 * One function on its way: the call's own, or one nested in it. Its `ctx` works while the frame is open; what a handler
 * left behind without awaiting it finds the frame closed and cannot touch another call's transaction.
 */
export class Frame implements Asker {
  readonly call: Call;
  /** What `ctx` was asked to do and failed. */
  failures: Map<unknown, string> | null = null;
  /** How many functions it is nested in. */
  readonly depth: number;
  /** Functions of the service itself may use the tables whose names begin with `_`. */
  readonly system: boolean;
  readonly #caller: Frame | null;
  readonly #reads: ReadTransaction;
  readonly #writes: WriteTransaction | null;
  #open = true;
  /** Settles when the nested functions asked for so far have ended; `null` when there is none. */
  #nested: Promise<void> | null = null;

  constructor(
    call: Call,
    options: {
      readonly reads: ReadTransaction;
      readonly writes: WriteTransaction | null;
      readonly caller: Frame | null;
      readonly system: boolean;
    },
  ) {
    this.call = call;
    this.#caller = options.caller;
    this.#reads = options.reads;
    this.#writes = options.writes;
    this.depth = options.caller === null ? 0 : options.caller.depth + 1;
    this.system = options.system;
  }

  /** Whether the function and those it is nested in are still running. */
  get open(): boolean {
    return this.#open && (this.#caller === null || this.#caller.open);
  }

  /** For reading. Throws when the function has ended. */
  get reads(): ReadTransaction {
    if (!this.open) throw ended(this.call);
    return this.#reads;
  }

  /** For writing. Throws in queries and when the function has ended. */
  get writes(): WriteTransaction {
    if (!this.open) throw ended(this.call);
    if (this.#writes === null) {
      throw new TypeError("A query cannot write to the database: make the function a mutation");
    }
    return this.#writes;
  }

  get writable(): boolean {
    return this.#writes !== null;
  }

  /** Whether a nested function is running in this frame's transaction. */
  get busy(): boolean {
    return this.#nested !== null;
  }

  /** Waits for nested functions: they and their caller take turns, because an error undoes a whole turn. */
  async turn(): Promise<void> {
    while (this.#nested !== null) await this.#nested;
  }

  /** Runs a nested function after those before it. */
  nest<T>(run: () => Promise<T>): Promise<T> {
    if (!this.open) throw ended(this.call);
    if (this.depth + 1 >= functionLimits.nestingMax) {
      throw withHelp(
        new RangeError(
          `Functions are nested more than ${functionLimits.nestingMax} deep: does one call itself without end?`,
        ),
        "limit",
      );
    }
    if (this.#writes === null) return run();
    const result = this.#nested === null ? run() : this.#nested.then(run);
    const settled: Promise<void> = result.then(nothing, nothing).then(() => {
      if (this.#nested === settled) this.#nested = null;
    });
    this.#nested = settled;
    return result;
  }

  /** Ends the function: from now on its `ctx` throws. */
  close(): void {
    this.#open = false;
  }
}

function nothing(): void {}

function ended(call: Call): Error {
  return withHelp(
    new Error(
      `"${call.udfPath}" has ended, and its ctx was used after that: await every promise before the handler returns`,
    ),
    "function_kind",
  );
}

const calls = new AsyncLocalStorage<Call>();
// Bound before app code is loaded: it knows the class, and a patched method would be handed the calls.
const getStore = calls.getStore.bind(calls);
const runWith = calls.run.bind(calls);

/**
 * The query or mutation whose code is running now: its clock, generator and console are what app code sees. Code that a
 * call left behind stays its own when it goes on beside the next one. `null` outside of calls, and always in runners.
 */
export function currentCall(): Call | null {
  return getStore() ?? null;
}

/** Runs the code of a call. */
export function asCall<Result>(call: Call, run: () => Result): Result {
  return runWith(call, run) as Result;
}
