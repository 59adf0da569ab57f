/** The naive model of the database: whole states by ts, one mutation after another. It defines the correct results. */
import { UserError } from "../../../mod/errors.ts";
import type { FunctionCall, MutationCall } from "../../../mod/functions/host_port.ts";
import type { Identity } from "../../../mod/functions/identity.ts";
import { deepEqual } from "../../../mod/protocol/deep_equal.ts";
import { mutations, queries, type Row, type WritableRows } from "./app.ts";

/** The outcome for a caller: a value, or an error as it may see it outside development. */
export type Answer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly errorMessage: string; readonly errorData: unknown };

export interface MutationRecord {
  readonly answer: Answer;
  readonly ts: number;
}

type State = ReadonlyMap<string, Row>;

export class Oracle {
  /** State after each commit, indexed by ts. */
  readonly #states: State[] = [new Map()];
  readonly #records = new Map<string, MutationRecord>();
  /** Answers by ts and query, as JSON text. */
  readonly #known = new Map<string, Answer>();

  get ts(): number {
    return this.#states.length - 1;
  }

  /** Runs a mutation after all earlier ones, or returns its recorded answer. */
  mutate(call: MutationCall): MutationRecord {
    const key = call.replay === undefined ? null : recordKey(call.replay, call.identity);
    const recorded = key === null ? undefined : this.#records.get(key);
    if (recorded !== undefined) return recorded;
    const before = this.#states[this.ts] ?? new Map<string, Row>();
    const state = new Map(before);
    const rows: WritableRows = {
      ...readRows(state),
      put: (row) => state.set(row.k, row),
      remove: (k) => state.delete(k),
    };
    const run = mutations[call.udfPath];
    const answer = attempt(call.udfPath, run && (() => run(rows, callerOf(call.identity), call.args)));
    if (answer.ok && !sameState(before, state)) this.#states.push(state);
    const record = { answer, ts: this.ts };
    if (key !== null) this.#records.set(key, record);
    return record;
  }

  /** The record of a request of a session and a principal, if any. */
  recorded(replay: { sessionId: string; requestId: number }, identity: Identity): MutationRecord | undefined {
    return this.#records.get(recordKey(replay, identity));
  }

  query({ udfPath, args, identity }: Omit<FunctionCall, "origin">, ts: number): Answer {
    const key = JSON.stringify([ts, udfPath, args, identity.principal, identity.sessionId]);
    let answer = this.#known.get(key);
    if (answer === undefined) {
      const state = this.#states[ts];
      if (state === undefined) throw new Error(`There is no commit ${ts}`);
      const run = queries[udfPath];
      answer = attempt(udfPath, run && (() => run(readRows(state), callerOf(identity), args)));
      if (this.#known.size > 10_000) this.#known.clear();
      this.#known.set(key, answer);
    }
    return answer;
  }
}

export function callerOf({ principal, sessionId }: Identity) {
  return { principal: () => principal, session: () => sessionId };
}

/** How a run ends for its caller. */
export function attempt(udfPath: string, run: (() => unknown) | undefined): Answer {
  if (run === undefined) {
    return { ok: false, errorMessage: `Unknown function ${udfPath}`, errorData: null };
  }
  try {
    return { ok: true, value: JSON.parse(JSON.stringify(run() ?? null)) };
  } catch (error) {
    return error instanceof UserError
      ? { ok: false, errorMessage: error.message, errorData: { code: error.code, data: error.data } }
      : { ok: false, errorMessage: "Server Error", errorData: null };
  }
}

function recordKey(
  { sessionId, requestId }: { readonly sessionId: string; readonly requestId: number },
  { principal }: Identity,
): string {
  return JSON.stringify([sessionId, requestId, principal]);
}

/** A mutation that leaves every row unchanged has written nothing. */
function sameState(a: State, b: State): boolean {
  return a.size === b.size && [...a].every(([k, row]) => deepEqual(row, b.get(k)));
}

function readRows(state: State) {
  const all = () => [...state.values()].sort((a, b) => order(a.g, b.g) || order(a.k, b.k));
  return {
    get: (k: string) => state.get(k) ?? null,
    group: (g: string) => all().filter((row) => row.g === g),
    all,
  };
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
