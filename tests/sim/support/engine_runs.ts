/** Functions of the simulated app run on the real engine and compared with the model. */
import assert from "node:assert/strict";
import type {
  CommitEntry,
  ReaderDatabase,
  ReadTransaction,
  SchemaDefinition,
  Value,
  WriterDatabase,
  WriteTransaction,
} from "../../../mod/engine/mod.ts";
import type {
  FunctionCall,
  MutationAnswer,
  MutationCall,
  QueryAnswer,
} from "../../../mod/functions/host_port.ts";
import type { Outcome } from "../../../mod/functions/outcome.ts";
import { decodeRecord, encodeRecord } from "../../../mod/functions/wire/replay_record.ts";
import { outcomeOf, unknownFunction, WatchedCaller } from "../../support/host_double.ts";
import { mutations, queries, type Row, type Rows, type WritableRows } from "./app.ts";
import { callerOf, type Oracle } from "./oracle.ts";

export const schema: SchemaDefinition = new Map([["rows", {
  indexes: [{ name: "by_k", fields: ["k"] }, { name: "by_group", fields: ["g", "k"] }],
  searchIndexes: [],
  vectorIndexes: [],
  validate: (fields) => fields as Record<string, Value>,
}]]);

/** Runs a query in the open snapshot. */
export function runQuery(
  database: ReaderDatabase,
  { udfPath, args, identity }: FunctionCall,
): Omit<QueryAnswer, "ts" | "durationMs"> {
  const transaction = database.beginQuery();
  const caller = new WatchedCaller(identity);
  const query = queries[udfPath];
  const outcome = query === undefined
    ? unknownFunction(udfPath)
    : outcomeOf(() => query(readRows(transaction), caller, args));
  return { outcome, readSet: transaction.readSet(), scope: caller.scope, nondeterministic: false };
}

/** The recorded answer of a mutation, if it has one. */
export function recordedAnswer(
  writer: Pick<WriterDatabase, "findRecord">,
  { replay, identity }: MutationCall,
  { forgetCaller = false } = {},
): MutationAnswer | null {
  const principal = forgetCaller ? null : identity.principal;
  const recorded = replay === undefined ? null : writer.findRecord({ ...replay, principal });
  if (recorded === null) return null;
  const { ending, ts } = decodeRecord(recorded);
  const outcome: Outcome = ending.ok
    ? { ok: true, value: ending.text, logLines: [] }
    : { ...ending, logLines: [] };
  return { outcome, ts, replayed: true };
}

/** Runs a mutation in the open group, or returns its recorded answer. Adds its commit to `entries`. */
export function runMutation(
  writer: WriterDatabase,
  { call, entries, forgetCaller = false }: {
    readonly call: MutationCall;
    readonly entries: CommitEntry[];
    /** Records it without its caller. */
    readonly forgetCaller?: boolean;
  },
): MutationAnswer {
  const principal = forgetCaller ? null : call.identity.principal;
  const key = call.replay && { ...call.replay, principal };
  const recorded = recordedAnswer(writer, call, { forgetCaller });
  if (recorded !== null) return recorded;
  const transaction = writer.beginMutation({ at: 1_700_000_000_000 });
  const mutation = mutations[call.udfPath];
  const outcome = call.failedWith !== undefined
    ? { ok: false as const, error: call.failedWith, logLines: [] }
    : mutation === undefined
    ? unknownFunction(call.udfPath)
    : outcomeOf(() => mutation(writeRows(transaction), callerOf(call.identity), call.args));
  if (outcome.ok) {
    const entry = writer.releaseMutation();
    if (entry !== null) entries.push(entry);
  } else {
    writer.rollbackMutation();
  }
  const { ts } = writer;
  const ending = outcome.ok ? { ok: true as const, text: outcome.value } : outcome;
  if (key !== undefined) writer.saveRecord(key, encodeRecord(ending, ts));
  return { outcome, ts, replayed: false };
}

/** The engine and the model must agree on every mutation. */
export function compareAnswer(
  oracle: Oracle,
  { call, answer: { outcome, ts } }: { readonly call: MutationCall; readonly answer: MutationAnswer },
): void {
  const expected = oracle.mutate(call);
  const what = `${call.udfPath} ${JSON.stringify(call.args)} by ${call.identity.principal}`;
  assert.equal(ts, expected.ts, `ts of ${what}`);
  assert.equal(outcome.ok, expected.answer.ok, `success of ${what}`);
  if (outcome.ok && expected.answer.ok) {
    assert.deepEqual(JSON.parse(outcome.value), expected.answer.value, `result of ${what}`);
  }
}

function readRows(transaction: ReadTransaction): Rows {
  const scan = (index: string, eq: Value[]): (Row & { readonly _id: string })[] => {
    const rows = [...transaction.scan("rows", index, { eq }, { order: "asc" })];
    return rows.map(({ doc }) => doc as unknown as Row & { _id: string });
  };
  return {
    get: (k) => plain(scan("by_k", [k])[0]),
    group: (g) => scan("by_group", [g]).flatMap((row) => plain(row) ?? []),
    all: () => scan("by_group", []).flatMap((row) => plain(row) ?? []),
  };
}

function writeRows(transaction: WriteTransaction): WritableRows {
  const idOf = (k: string): string | undefined =>
    [...transaction.scan("rows", "by_k", { eq: [k] }, { order: "asc" })][0]?.doc._id;
  return {
    ...readRows(transaction),
    put: (row) => {
      const id = idOf(row.k);
      if (id === undefined) transaction.insert("rows", { ...row });
      else transaction.replace(id, { ...row });
    },
    remove: (k) => {
      const id = idOf(k);
      if (id !== undefined) transaction.delete(id);
    },
  };
}

function plain(row: Row | undefined): Row | null {
  return row === undefined ? null : { k: row.k, g: row.g, n: row.n, owner: row.owner };
}
