/**
 * The format of a journal row: all changes of one group, and the checksum that chains it to the previous row. The body
 * consists of lines. The first is JSON and describes the others: documents and replay records as stored. They contain
 * no line breaks, so they need no escaping or parsing.
 */
import { hash } from "node:crypto";
import { EngineError } from "../errors.ts";
import { principalOf, type RecordRun } from "../record_runs.ts";
import type { CommitEntry, DocumentChange, RecordKey } from "../types.ts";
import type { CatalogState } from "./catalog_state.ts";

/** One row. `seq` counts the rows of a database. */
export interface JournalRow {
  readonly seq: number;
  /** The newest commit before and after the group; equal if only records changed. */
  readonly tsBefore: number;
  readonly ts: number;
  /** Wall clock of the newest commit, ms since the epoch. */
  readonly at: number;
  /** Checksum of this row and all before it in its generation. */
  readonly sum: string;
  readonly body: string;
  /** Checksum of the previous row, if this row has been verified against it. */
  readonly before?: string;
}

/** A document after a commit. */
export interface RowChange {
  readonly id: string;
  readonly text: string | null;
  /** Whether the document existed and its index entries are unchanged. */
  readonly same: boolean;
}

export interface RowCommit {
  readonly ts: number;
  readonly at: number;
  readonly changes: readonly RowChange[];
}

export interface RowContents {
  readonly commits: readonly RowCommit[];
  /** Replay records of the group. */
  readonly records: readonly RecordRun[];
  readonly lastCreationTime: number;
  /** Tables and indexes from this row on, if they changed. */
  readonly catalog: CatalogState | null;
}

/** The first line. */
interface Head {
  /** Commits: time, and the ids of changed documents. A `-` before an id marks a deletion. */
  readonly e?: readonly (readonly [at: number, ids: readonly string[]])[];
  /** Runs of replay records, with the ts of each record. */
  readonly r?: readonly (readonly [
    session: string,
    principal: string,
    oldest: number,
    ts: readonly number[],
  ])[];
  /** Alternating counts of changes that do not, and may, affect index entries. Later ones may; older rows need none. */
  readonly s?: readonly number[];
  readonly t: number;
  readonly c?: CatalogState;
}

const { parse, stringify } = JSON;
/** 128 bits, against damage and mistakes. An attacker with write access to a target can compute any checksum. */
const SUM_CHARS = 32;

export function firstSum(generation: string): string {
  return hash("sha256", `syncline journal ${generation}`).slice(0, SUM_CHARS);
}

/** Returns the checksum of a row after one with the checksum `before`. */
export function chainedSum(before: string, row: Omit<JournalRow, "sum" | "before">): string {
  const { seq, tsBefore, ts, at, body } = row;
  return hash("sha256", `${before} ${seq} ${tsBefore} ${ts} ${at}\n${body}`).slice(0, SUM_CHARS);
}

/** Throws an `EngineError` unless a row continues a history. Returns the position. */
export function checkFollows<Head extends { readonly seq: number; readonly sum: string }>(
  { head, ts }: { readonly head: Head | null; readonly ts: number },
  row: JournalRow,
): Head {
  if (head === null) {
    throw new EngineError("bad_entry", "This database does not follow the history of another");
  }
  const chained = row.before === undefined ? chainedSum(head.sum, row) === row.sum : row.before === head.sum;
  if (row.seq !== head.seq + 1 || row.tsBefore !== ts || !chained) {
    throw new EngineError(
      "bad_entry",
      `Journal row ${row.seq} does not follow row ${head.seq}, with which this database ends`,
    );
  }
  return head;
}

export function recordsUntil(run: RecordRun, untilTs: number): RecordRun {
  const count = run.ts.filter((ts) => ts <= untilTs).length;
  if (count === run.ts.length) return run;
  const answers = run.answers.slice(0, count);
  const chars = answers.reduce((sum, { length }) => sum + length, 0);
  return { ...run, answers, ts: run.ts.slice(0, count), chars };
}

export function nextRow(
  head: { readonly seq: number; readonly sum: string },
  group: Parameters<typeof rowBody>[0] & {
    readonly tsBefore: number;
    readonly ts: number;
    readonly now: () => number;
  },
): JournalRow {
  const { tsBefore, ts, entries, now } = group;
  const at = entries.at(-1)?.at ?? now();
  const row = { seq: head.seq + 1, tsBefore, ts, at, body: rowBody(group) };
  return { ...row, sum: chainedSum(head.sum, row) };
}

export function rowBody(
  { entries, records, lastCreationTime, catalog }: {
    readonly entries: readonly CommitEntry[];
    readonly records: RowContents["records"];
    readonly lastCreationTime: number;
    readonly catalog: CatalogState | null;
  },
): string {
  const lines: string[] = [];
  const e = entries.map(({ at, changes }) => {
    const ids = changes.map(({ id, doc }) => {
      if (doc === null) return `-${id}`;
      if (doc === undefined) {
        throw new EngineError("bad_entry", `The change of document "${id}" has no valid id`);
      }
      lines.push(doc);
      return id;
    });
    return [at, ids] as const;
  });
  const r = records.map(({ session, principal, oldest, answers, ts }) => {
    for (const answer of answers) lines.push(answer);
    return [session, principal, oldest, ts] as const;
  });
  const s = sameRuns(entries);
  const head: Head = {
    ...(e.length > 0 ? { e } : {}),
    ...(r.length > 0 ? { r } : {}),
    ...(s.length > 0 ? { s } : {}),
    t: lastCreationTime,
    ...(catalog === null ? {} : { c: catalog }),
  };
  lines.unshift(stringify(head));
  return lines.join("\n");
}

/** Returns {@linkcode Head.s} of a group; empty if all changes may affect indexes. */
function sameRuns(entries: readonly CommitEntry[]): number[] {
  const runs: number[] = [];
  let same = true;
  let count = 0;
  for (const { changes } of entries) {
    for (const change of changes) {
      if (leavesIndexes(change) !== same) {
        runs.push(count);
        count = 0;
        same = !same;
      }
      count++;
    }
  }
  if (same && count > 0) runs.push(count);
  return runs.length === 1 && runs[0] === 0 ? [] : runs;
}

/** Whether a document existed and its keys are unchanged. Other indexes have keys only for changes. */
function leavesIndexes({ keys }: DocumentChange): boolean {
  for (const [space, before, after] of keys) {
    if (before === null || before !== after || space.startsWith("s")) return false;
  }
  return keys.length > 0;
}

/** Returns a function that expands {@linkcode Head.s}, one change for each call. */
function alternating(runs: readonly number[]): () => boolean {
  let turn = 0;
  let left = runs[0] ?? 0;
  return () => {
    while (left === 0 && turn < runs.length) left = runs[++turn] ?? 0;
    left--;
    return turn < runs.length && turn % 2 === 0;
  };
}

/** Parses a row whose checksum has been verified. Throws an `EngineError` for an invalid body. */
export function readRow({ seq, tsBefore, ts, body }: JournalRow): RowContents {
  const lines = body.split("\n");
  let at = 0;
  const line = (): string => {
    const next = lines[at++];
    if (next === undefined) throw broken(seq, "it ends too early");
    return next;
  };
  let head: Head;
  try {
    head = parse(line()) as Head;
  } catch (cause) {
    throw broken(seq, "its first line is no JSON", cause);
  }
  let commitTs = tsBefore;
  const nextSame = alternating(head.s ?? []);
  const commits = (head.e ?? []).map(([when, ids]): RowCommit => ({
    ts: ++commitTs,
    at: when,
    changes: ids.map((id) => {
      const same = nextSame();
      return id.startsWith("-") ? { id: id.slice(1), text: null, same: false } : { id, text: line(), same };
    }),
  }));
  const records = (head.r ?? []).map(([session, principal, oldest, tss]) => {
    const answers = tss.map(() => line());
    const chars = answers.reduce((sum, { length }) => sum + length, 0);
    return { session, principal, oldest, answers, ts: [...tss], chars };
  });
  if (commitTs !== ts || at !== lines.length) throw broken(seq, "its lines do not match its first line");
  return { commits, records, lastCreationTime: head.t, catalog: head.c ?? null };
}

/** Returns the recorded answers in a verified row, of the sessions that `isAwaited` accepts. */
export function* recordedAnswers(
  row: JournalRow,
  isAwaited: (sessionId: string) => boolean,
): Generator<{ readonly key: RecordKey; readonly answer: string }> {
  if (headOf(row.body).r?.some(([session]) => isAwaited(session)) !== true) return;
  for (const { session, principal, oldest, answers } of readRow(row).records) {
    if (!isAwaited(session)) continue;
    for (const [at, answer] of answers.entries()) {
      const key = { sessionId: session, requestId: oldest + at, principal: principalOf(principal) };
      yield { key, answer };
    }
  }
}

/** Appears in the first line only if it has a catalog: everything else in it is arrays, numbers and strings. */
export const CATALOG_MARK = '"c":{';

/** Returns whether a row changes tables or indexes, without parsing it. */
export function changesCatalog({ body }: Pick<JournalRow, "body">): boolean {
  return headTextOf(body).includes(CATALOG_MARK);
}

/** Returns the code version that a row sets. `null`: each server's own. `undefined`: the row sets none. */
export function versionInRow({ body }: Pick<JournalRow, "body">): string | null | undefined {
  const { c } = headOf(body);
  return c === undefined ? undefined : c.code ?? null;
}

/** Returns the times of the first and last commit of a row, or the row's own time. */
export function rowTimes({ at, body }: Pick<JournalRow, "at" | "body">): { first: number; last: number } {
  const head = headOf(body);
  let [first, last] = [at, at];
  for (const [when] of head.e ?? []) {
    first = Math.min(first, when);
    last = Math.max(last, when);
  }
  return { first, last };
}

function headOf(body: string): Head {
  return parse(headTextOf(body)) as Head;
}

function headTextOf(body: string): string {
  const end = body.indexOf("\n");
  return end < 0 ? body : body.slice(0, end);
}

function broken(seq: number, why: string, cause?: unknown): EngineError {
  return new EngineError("bad_entry", `Journal row ${seq} cannot be read: ${why}`, { cause });
}
