/**
 * A journal row: all that one group changed, as text, with the sum that chains it to the row before. The text is lines.
 * The first is JSON and says what the others are: the documents and the replay records, as they are stored. No document
 * and no record holds a line break, so none of them is escaped or parsed on the way.
 */
import { hash } from "node:crypto";
import { EngineError } from "../errors.ts";
import type { RecordRun } from "../record_runs.ts";
import type { CommitEntry, DocumentChange } from "../types.ts";
import type { CatalogState } from "./catalog_state.ts";

/** One row. `seq` counts the rows of a database, one by one. */
export interface JournalRow {
  readonly seq: number;
  /** The newest commit before the row's group, and after it: the same when nothing but records changed. */
  readonly tsBefore: number;
  readonly ts: number;
  /** Wall clock of the row's newest commit, ms since the epoch. */
  readonly at: number;
  /** Of this row and all before it in its generation. */
  readonly sum: string;
  readonly body: string;
  /** The sum of the row before, when it was seen that this row's own sum follows from it. */
  readonly before?: string;
}

/** One document as a commit leaves it. */
export interface RowChange {
  readonly id: string;
  /** `null`: deleted. */
  readonly text: string | null;
  /** Whether it is known that it was there before, and that the indexes hold of it what they held. */
  readonly same: boolean;
}

export interface RowCommit {
  readonly ts: number;
  readonly at: number;
  readonly changes: readonly RowChange[];
}

/** What a row says. */
export interface RowContents {
  readonly commits: readonly RowCommit[];
  /** Replay records of the group. */
  readonly records: readonly RecordRun[];
  /** Creation time of the newest document of all. */
  readonly lastCreationTime: number;
  /** Tables and indexes as they are from here on, when they have changed. */
  readonly catalog: CatalogState | null;
}

/** The first line. */
interface Head {
  /** Commits: when, and the ids of what changed; a deleted document has `-` before its id. */
  readonly e?: readonly (readonly [at: number, ids: readonly string[]])[];
  /** Runs of records: for each record the ts. */
  readonly r?: readonly (readonly [
    session: string,
    principal: string,
    oldest: number,
    ts: readonly number[],
  ])[];
  /**
   * How many changes in a row leave the indexes as they are, how many are not known to do so, and so on in turn. What is
   * behind the last number is not known to do so either: rows of a version that did not say it are without it.
   */
  readonly s?: readonly number[];
  readonly t: number;
  readonly c?: CatalogState;
}

const { parse, stringify } = JSON;
/** Characters of a sum: 128 bits, against damage and mistakes. Whoever may write to a target can make any sum. */
const SUM_CHARS = 32;

/** What a chain begins with. */
export function firstSum(generation: string): string {
  return hash("sha256", `syncline journal ${generation}`).slice(0, SUM_CHARS);
}

/** The sum of a row that follows one with the sum `before`. */
export function chainedSum(before: string, row: Omit<JournalRow, "sum" | "before">): string {
  const { seq, tsBefore, ts, at, body } = row;
  return hash("sha256", `${before} ${seq} ${tsBefore} ${ts} ${at}\n${body}`).slice(0, SUM_CHARS);
}

/** Where a row has to follow: throws an `EngineError` unless it does. Gives back where that is. */
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

/** The records of a run that were made up to a commit: what was answered later has not happened. */
export function recordsUntil(run: RecordRun, untilTs: number): RecordRun {
  const count = run.ts.filter((ts) => ts <= untilTs).length;
  if (count === run.ts.length) return run;
  const answers = run.answers.slice(0, count);
  const chars = answers.reduce((sum, { length }) => sum + length, 0);
  return { ...run, answers, ts: run.ts.slice(0, count), chars };
}

/** The row of a group that goes on from where a history stands. */
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

/** The text of a row. */
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
        throw new EngineError("bad_entry", `The change of document "${id}" does not say what it is`);
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

/** {@linkcode Head.s} of a group; nothing where no change leaves the indexes as they are. */
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

/** Whether a document was there, and has the keys that it had. A search or vector index has a key only when it is another. */
function leavesIndexes({ keys }: DocumentChange): boolean {
  for (const [space, before, after] of keys) {
    if (before === null || before !== after || space.startsWith("s")) return false;
  }
  return keys.length > 0;
}

/** Says of one change after the other what {@linkcode Head.s} says of it. */
function alternating(runs: readonly number[]): () => boolean {
  let turn = 0;
  let left = runs[0] ?? 0;
  return () => {
    while (left === 0 && turn < runs.length) left = runs[++turn] ?? 0;
    left--;
    return turn < runs.length && turn % 2 === 0;
  };
}

/** What a row says. Its sum must have been checked: an `EngineError` for a text that makes no sense is the most it can do. */
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
  if (commitTs !== ts || at !== lines.length) throw broken(seq, "it does not say what its head promises");
  return { commits, records, lastCreationTime: head.t, catalog: head.c ?? null };
}

/** What the first line has where it has a catalog, and nowhere else: all else in it are arrays, numbers and strings. */
export const CATALOG_MARK = '"c":{';

/** Whether a row changes tables or indexes; told without parsing what it says. */
export function changesCatalog({ body }: Pick<JournalRow, "body">): boolean {
  return headTextOf(body).includes(CATALOG_MARK);
}

/**
 * The version of the code that is served from a row on that changes the catalog; `null`: what each server was started with,
 * `undefined`: the row says nothing of it.
 */
export function versionInRow({ body }: Pick<JournalRow, "body">): string | null | undefined {
  const { c } = headOf(body);
  return c === undefined ? undefined : c.code ?? null;
}

/** When the first and the last commit of a row were made; that of the row without commits. */
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
