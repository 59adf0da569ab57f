/**
 * Finds runs, newest first. Each part of the log is walked where least has to be looked at: in its packs, or along an index of
 * those that failed or said something. It goes in steps, and the walk ends when its time is over: then it says how far back it
 * came, and the next page goes on there.
 */
import { column, nothingTold, recordAt } from "../packs/run_pack.ts";
import { admitsFunction, hasText, type RunFilter } from "../run_filter.ts";
import { type RunRecord, searchedText } from "../run_record.ts";
import { OTHER_FUNCTIONS } from "./function_names.ts";
import type { LogStore } from "./log_store.ts";
import type { Row } from "./log_database.ts";
import { type PackedRun, walkPacks } from "./pack_search.ts";
import { allHaveRows, rowOf, type RowRun, walkRows } from "./row_search.ts";

export interface FoundRun {
  readonly id: number;
  readonly record: RunRecord;
}

export interface SearchOptions {
  readonly filter: RunFilter;
  /** Only runs with smaller ids: where the last page ended. */
  readonly before?: number;
  /** Only runs with larger ids. */
  readonly after?: number;
  readonly limit: number;
  /** When to stop, by `performance.now()`. */
  readonly deadline: number;
}

export interface SearchResult {
  readonly runs: readonly FoundRun[];
  /** `before` of the next page; `null` when there is nothing more to look at. */
  readonly next: number | null;
  /** Whether the search was ended by the clock: then runs between the last one and `next` were looked at too. */
  readonly cut: boolean;
}

const unknownName = { path: "?", kind: 0 } as const;

/** The newest runs that pass. */
export function searchRuns(store: LogStore, options: SearchOptions): SearchResult {
  const { limit } = options;
  const runs: FoundRun[] = [];
  for (const step of walk(store, options)) {
    for (const candidate of step.candidates) {
      const found = checked(store, candidate, options.filter);
      if (found === null) continue;
      runs.push(found);
      if (runs.length >= limit) return { runs, next: found.id, cut: false };
    }
    if (step.next !== null && performance.now() >= options.deadline) {
      return { runs, next: step.next, cut: true };
    }
  }
  return { runs, next: null, cut: false };
}

/** A run that passes, but for its text and, of one in a row, its caller's name. */
export type Candidate = PackedRun | RowRun;

/** Runs of a step of the walk; `next` is where the next one begins, `null` after the last. */
export interface WalkStep {
  readonly candidates: readonly Candidate[];
  readonly next: number | null;
}

/** All runs that may pass, newest first. */
export function* walk(
  store: LogStore,
  { filter, before = Infinity, after = 0, limit }: Omit<SearchOptions, "deadline">,
): Generator<WalkStep> {
  const functions = store.names.admitted(filter);
  if (functions?.size === 0) return;
  const steps = allHaveRows(filter) ? walkRows : walkPacks;
  for (const segment of store.segments.toReversed()) {
    if (segment.facts.firstId >= before || !segment.mayHold(filter, functions)) continue;
    if (segment.facts.lastId <= after) return;
    const [least, most] = segment.idsWithin(store.database, filter);
    const low = Math.max(least, after + 1);
    const high = Math.min(most, before - 1);
    const oldest = segment === store.segments[0];
    for (const step of steps(store, { segment, filter, functions, low, high, limit })) {
      yield { candidates: step.runs, next: oldest && step.low <= low ? null : step.low };
    }
  }
}

/** The run of a candidate, if the filter lets it through. */
export function checked(store: LogStore, candidate: Candidate, filter: RunFilter): FoundRun | null {
  if ("row" in candidate) return checkedRow(store, candidate.row, filter);
  const { id, segment, pack, position } = candidate;
  const fn = pack.functions[pack.columns.at(column.fn, position)] ?? OTHER_FUNCTIONS;
  if (fn === OTHER_FUNCTIONS || pack.columns.at(column.told, position) !== 0) {
    const told = rowOf(store, segment, id);
    if (told !== undefined) return checkedRow(store, told, filter);
  }
  if (filter.text !== undefined) return null;
  const { path, kind } = store.names.named(fn) ?? unknownName;
  const caller = pack.callers[pack.columns.at(column.caller, position) - 1] ?? null;
  return { id, record: recordAt(pack.columns, position, { path, kind, caller, ...nothingTold }) };
}

function checkedRow(store: LogStore, row: Row, filter: RunFilter): FoundRun | null {
  const [id, at, fn, outcome, level, request, body] = row as [
    number,
    number,
    number,
    number,
    number,
    number,
    string,
  ];
  const [caller, ...rest] = JSON.parse(body) as [string | null, ...unknown[]];
  if (filter.caller !== undefined && filter.caller !== caller) return null;
  const name = fn === OTHER_FUNCTIONS
    ? { path: rest[9] as string, kind: rest[10] as number }
    : store.names.named(fn) ?? unknownName;
  if (fn === OTHER_FUNCTIONS && !admitsFunction(filter, name)) return null;
  const record = [
    at,
    name.path,
    name.kind,
    caller,
    outcome,
    level,
    request,
    ...rest.slice(0, 9),
  ] as unknown as RunRecord;
  if (filter.text !== undefined && !hasText(filter.text, searchedText(record[14], record[15]))) return null;
  return { id, record };
}
