/** State of a running call: its permissions, inputs and usage. */
import { withHelp } from "../../../explained.ts";
import { AsyncLocalStorage } from "node:async_hooks";
import type { ReadTransaction, WriteTransaction } from "../../../engine/mod.ts";
import { functionLimits } from "../../../limits.ts";
import type { Lineage } from "../../api/system_context.ts";
import type { AuthScope, Identity } from "../../identity.ts";
import { LogLines } from "../ctx/log_lines.ts";
import type { ReadTracer } from "./read_tracer.ts";
import type { ContextUser, RejectionTracker } from "./unhandled_failures.ts";
import { UndoLog } from "./undo_log.ts";

/** A call from outside, including all nested calls. */
export class Call implements RejectionTracker {
  readonly udfPath: string;
  readonly identity: Identity;
  /** The call's time, milliseconds since the epoch. Frozen in queries and mutations. */
  readonly at: number;
  /** Its transaction. Actions have none. */
  readonly reads: ReadTransaction | undefined;
  /** Seed of a query's random generator, so that repeated runs draw the same numbers. `null` for real randomness. */
  readonly seed: (() => string) | null;
  readonly logLines: LogLines = new LogLines();
  /** How much of the identity was read. Only widens. */
  scope: AuthScope = "nothing";
  /** Whether the run read the clock or the random generator. */
  nondeterministic = false;
  /** Records what is read. `null` for calls that are not traced. */
  tracer: ReadTracer | null = null;
  /** Created on first use (determinism.ts). */
  random: (() => number) | null = null;
  /** The scheduled function that caused it. */
  lineage: Lineage | null;
  /** Undo log of its group, for mutations. */
  readonly undos: UndoLog;
  /** Rejections without a handler (unhandled_failures.ts). */
  lost: Map<object, unknown> | null = null;

  constructor(
    options: {
      readonly udfPath: string;
      readonly identity: Identity;
      readonly at: number;
      readonly seed: (() => string) | null;
      readonly reads: ReadTransaction | undefined;
      readonly lineage?: Lineage | undefined;
      readonly undos?: UndoLog | undefined;
    },
  ) {
    this.udfPath = options.udfPath;
    this.identity = options.identity;
    this.at = options.at;
    this.seed = options.seed;
    this.reads = options.reads;
    this.lineage = options.lineage ?? null;
    this.undos = options.undos ?? new UndoLog();
  }
}

/** A running function, the call's own or nested. Its `ctx` works while the frame is open, not for code left running. */
export class Frame implements ContextUser {
  readonly call: Call;
  /** Failed operations of `ctx`. */
  failures: Map<unknown, string> | null = null;
  checks: Promise<unknown> | null = null;
  readonly depth: number;
  /** Functions of the service may use tables whose names begin with `_`. */
  readonly system: boolean;
  readonly #caller: Frame | null;
  readonly #reads: ReadTransaction;
  readonly #writes: WriteTransaction | null;
  #open = true;
  /** Settles when the nested functions started so far have ended. `null` if there are none. */
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

  /** Whether the function and all its callers are still running. */
  get open(): boolean {
    return this.#open && (this.#caller === null || this.#caller.open);
  }

  /** Throws if the function has ended. */
  get reads(): ReadTransaction {
    if (!this.open) throw ended(this.call);
    return this.#reads;
  }

  /** Throws in queries, and if the function has ended. */
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

  /** Whether a nested function is using this frame's transaction. */
  get busy(): boolean {
    return this.#nested !== null;
  }

  /** Waits for nested functions. They never overlap with their caller, because an error undoes all writes since they began. */
  async nestedSettled(): Promise<void> {
    while (this.#nested !== null) await this.#nested;
  }

  /** Runs a nested function after those started before. */
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

  /** Ends the function. Its `ctx` throws from now on. */
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
// Bound before app code is loaded, which could patch the methods and obtain the calls.
const getStore = calls.getStore.bind(calls);
const runWith = calls.run.bind(calls);

/** The running query or mutation, whose clock and console app code sees. `null` outside calls and in runners. */
export function currentCall(): Call | null {
  return getStore() ?? null;
}

/** Runs the code of a call. */
export function asCall<Result>(call: Call, run: () => Result): Result {
  return runWith(call, run) as Result;
}
