/** Finds runs, newest first, in ID ranges sized by the last one's time: SQLite calls cannot be interrupted. */
import type { SQLInputValue } from "node:sqlite";
import { mentionsText, type RunFilter } from "../run_filter.ts";
import type { RunRecord } from "../run_record.ts";
import type { LogDatabase, Row } from "./log_database.ts";
import { type LogStore, RUN_COLUMNS } from "./log_store.ts";

export interface FoundRun {
  readonly id: number;
  readonly record: RunRecord;
}

export interface SearchOptions {
  readonly filter: RunFilter;
  /** Return only runs with smaller IDs: the end of the previous page. */
  readonly before?: number;
  /** Return only runs with larger IDs. */
  readonly after?: number;
  readonly limit: number;
  /** By `performance.now()`. */
  readonly deadline: number;
}

export interface SearchResult {
  readonly runs: readonly FoundRun[];
  /** `before` of the next page; `null` at the end of the log. */
  readonly next: number | null;
  /** Whether the deadline ended the search. */
  readonly cut: boolean;
}

export interface SearchStep {
  readonly runs: readonly FoundRun[];
  /** End of the remaining range; `null` if nothing remains. */
  readonly next: number | null;
}

type Condition = readonly [sql: string, parameters: readonly SQLInputValue[]];

/** An index whose entries for the filter are ordered by ID. */
interface IndexChoice {
  readonly index: string;
  readonly condition: Condition;
}

const HAS_TEXT = "(error IS NOT NULL OR lines IS NOT NULL)";
/** Version of a run. Ranges of IDs do not overlap, but runs without a version are in none. */
const VERSION = `(SELECT CASE WHEN last >= runs.id THEN hash END FROM versions WHERE first <= runs.id
  ORDER BY first DESC LIMIT 1)`;
const MINUTE_MS = 60_000;
/** Target duration of a range. */
const STEP_MS = 8;
const SPAN_FIRST = 8_192;
const SPAN_MAX = 1 << 20;
/** Index entries up to which an index is better than the text index. */
const FEW_ENTRIES = 2_000;
/** Functions of a prefix that are looked up in the index. */
const INDEXED_PATHS_MAX = 64;
/** Runs read at once to check their text, because each lookup of many trigrams takes milliseconds. */
const CHECKED_AT_ONCE = 500;
const TRIGRAM_CHARS = 3;
/** Trigrams of a long text that are looked up. */
const TRIGRAMS_MAX = 12;

export function searchRuns(store: LogStore, options: SearchOptions): SearchResult {
  const { limit, deadline } = options;
  const runs: FoundRun[] = [];
  for (const step of searchSteps(store, options)) {
    for (const run of step.runs) {
      runs.push(run);
      if (runs.length >= limit) return { runs, next: run.id, cut: false };
    }
    if (step.next !== null && performance.now() >= deadline) return { runs, next: step.next, cut: true };
  }
  return { runs, next: null, cut: false };
}

/** Returns all matching runs, newest first, by ranges of IDs. */
export function* searchSteps(
  { database }: LogStore,
  { filter, before, after, limit }: Omit<SearchOptions, "deadline">,
): Generator<SearchStep> {
  const { text } = filter;
  const [from, conditions, id] = searchClauses(database, filter);
  const sql = `SELECT ${RUN_COLUMNS}, ${VERSION} ${from} ORDER BY ${id} DESC LIMIT ?`;
  const rowsMax = text === undefined ? limit : Math.max(limit, CHECKED_AT_ONCE);
  for (const range of idRanges(database, filter, { before, after })) {
    const rows = database.all(sql, ...conditions, ...range.bounds(), rowsMax);
    const found = rows.map(foundRun);
    if (rows.length === rowsMax) range.bottom = found.at(-1)?.id ?? range.bottom;
    const runs = text === undefined ? found : found.filter(({ record }) => mentionsText(record, text));
    yield { runs, next: range.bottom > range.low ? range.bottom : null };
  }
}

/** Matching runs of a range of IDs, by bar and outcome. */
export interface CountStep {
  readonly counts: readonly (readonly [bar: number, outcome: number, runs: number])[];
  /** Time of the oldest run of the range. */
  readonly at: number;
  readonly isLast: boolean;
}

/** Counts matching runs by ranges of IDs, newest first. The text of a filter is not considered. */
export function* countSteps(
  { database }: LogStore,
  { filter, from, width }: { readonly filter: RunFilter; readonly from: number; readonly width: number },
): Generator<CountStep> {
  const { text: _, ...counted } = filter;
  const [source, conditions] = searchClauses(database, counted);
  const sql = `SELECT (at - ?) / ?, outcome, count(*) ${source} GROUP BY 1, 2`;
  for (const range of idRanges(database, counted, {})) {
    const counts = database.all(sql, BigInt(from), BigInt(width), ...conditions, ...range.bounds());
    const at = database.value("SELECT at FROM runs WHERE id >= ? ORDER BY id LIMIT 1", range.bottom);
    yield {
      counts: counts as unknown as CountStep["counts"],
      at: Number(at ?? from),
      isLast: range.bottom <= range.low,
    };
  }
}

/** A range of IDs, both inclusive. */
interface IdRange {
  readonly low: number;
  /** The least ID of this range. Raised if the reader did not read all of it. */
  bottom: number;
  /** As integers: the text index ignores bounds that are floating-point numbers, as which all others are passed. */
  readonly bounds: () => readonly [bottom: bigint, high: bigint];
}

/** Divides the IDs that may match into ranges, newest first, which take about `STEP_MS` each. */
function* idRanges(
  database: LogDatabase,
  filter: RunFilter,
  { before = Infinity, after = 0 }: {
    readonly before?: number | undefined;
    readonly after?: number | undefined;
  },
): Generator<IdRange> {
  const ids = idsOf(database, filter);
  if (ids === null) return;
  const low = Math.max(ids[0], after + 1);
  let high = Math.min(ids[1], before - 1);
  for (let span = SPAN_FIRST; high >= low;) {
    const startedAt = performance.now();
    const bottom = Math.max(low, high - span + 1);
    const range: IdRange = { low, bottom, bounds: () => [BigInt(bottom), BigInt(high)] };
    yield range;
    high = range.bottom - 1;
    const took = performance.now() - startedAt;
    if (took < STEP_MS / 2) span = Math.min(SPAN_MAX, span * 2);
    else if (took > STEP_MS * 2) span = Math.max(SPAN_FIRST, span / 2);
  }
}

/** Conditions on columns that `runs` and `counts` have in common. */
export function countedConditions({ functions, kinds, system, outcomes, level }: RunFilter): Condition[] {
  const conditions: Condition[] = [];
  if (functions !== undefined) {
    const paths = functions.map((name): Condition =>
      name.endsWith("*")
        ? ["substr(path, 1, ?) = ?", [[...name].length - 1, name.slice(0, -1)]]
        : ["path = ?", [name]]
    );
    conditions.push([
      `(${paths.map(([sql]) => sql).join(" OR ")})`,
      paths.flatMap(([, parameters]) => parameters),
    ]);
  }
  if (kinds !== undefined) conditions.push([`kind IN (${kinds.join(", ")})`, []]);
  if (system !== undefined) conditions.push([`(substr(path, 1, 1) = '_') = ${system ? 1 : 0}`, []]);
  if (outcomes !== undefined) conditions.push([`outcome IN (${outcomes.join(", ")})`, []]);
  if (level !== undefined) conditions.push(["level >= ?", [level]]);
  return conditions;
}

/** Returns the source and conditions of a range, their parameters before the first and last ID, and the name of the ID. */
function searchClauses(
  database: LogDatabase,
  filter: RunFilter,
): readonly [sql: string, parameters: readonly SQLInputValue[], id: string] {
  const conditions = countedConditions(filter);
  const { from, to, caller, request, minMs, version, text } = filter;
  if (from !== undefined) conditions.push(["at >= ?", [from]]);
  if (to !== undefined) conditions.push(["at < ?", [to]]);
  if (caller !== undefined) conditions.push(["caller IS ?", [caller]]);
  if (request !== undefined) conditions.push(["request = ?", [request]]);
  // Durations are stored in hundredths of a millisecond.
  if (minMs !== undefined) conditions.push(["duration >= ?", [minMs * 100]]);
  if (version !== undefined) conditions.push([`substr(${VERSION}, 1, ?) = ?`, [version.length, version]]);
  if (text !== undefined) conditions.push([HAS_TEXT, []]);
  const trigrams = text === undefined ? null : trigramQuery(text);
  const best = bestIndex(database, filter, trigrams === null ? Infinity : FEW_ENTRIES);
  const useTexts = best === null && trigrams !== null;
  if (best !== null) conditions.unshift(best.condition);
  if (useTexts) conditions.unshift(["texts MATCH ?", [trigrams]]);
  const id = useTexts ? "texts.rowid" : "id";
  const source = useTexts
    ? "texts CROSS JOIN runs ON runs.id = texts.rowid"
    : best === null
    ? "runs NOT INDEXED"
    : `runs INDEXED BY ${best.index}`;
  conditions.push([`${id} BETWEEN ? AND ?`, []]);
  return [
    `FROM ${source} WHERE ${conditions.map(([sql]) => sql).join(" AND ")}`,
    conditions.flatMap(([, parameters]) => parameters),
    id,
  ];
}

/** Returns the index with the fewest entries for a filter; `null` if none has less than `entriesMax`. */
function bestIndex(database: LogDatabase, filter: RunFilter, entriesMax: number): IndexChoice | null {
  let best: IndexChoice | null = null;
  let fewest = entriesMax;
  for (const { index, condition: [sql, parameters] } of usableIndexes(database, filter)) {
    const entries = database.value(
      `SELECT count(*) FROM (SELECT 1 FROM runs INDEXED BY ${index} WHERE ${sql} LIMIT ${FEW_ENTRIES})`,
      ...parameters,
    ) as number;
    if (entries >= fewest) continue;
    fewest = entries;
    best = { index, condition: [sql, parameters] };
  }
  return best;
}

function usableIndexes(
  database: LogDatabase,
  { functions, request, outcomes, level, text }: RunFilter,
): IndexChoice[] {
  const choices: IndexChoice[] = [];
  if (request !== undefined) choices.push({ index: "runs_request", condition: ["request = ?", [request]] });
  if (outcomes !== undefined && !outcomes.includes(0)) {
    const failures = `outcome > 0 AND outcome IN (${outcomes.join(", ")})`;
    choices.push({ index: "runs_outcome", condition: [failures, []] });
  }
  // Equality, so that entries of a range of IDs are found.
  if (level !== undefined && level > 2) {
    choices.push({ index: "runs_level", condition: [`level > 2 AND level IN (${level}, 4)`, []] });
  }
  const paths = functions === undefined ? null : indexedPaths(database, functions);
  if (paths !== null) {
    const marks = paths.map(() => "?").join(", ");
    const [index, more] = text === undefined ? ["runs_path", ""] : ["runs_text", ` AND ${HAS_TEXT}`];
    choices.push({ index, condition: [`path IN (${marks})${more}`, paths] });
  }
  return choices;
}

/** Returns the paths of functions, with those that match a prefix; `null` for too many. */
function indexedPaths(database: LogDatabase, functions: readonly string[]): string[] | null {
  const paths: string[] = [];
  for (const name of functions) {
    if (!name.endsWith("*")) paths.push(name);
    else {
      const prefix = name.slice(0, -1);
      let path = database.value("SELECT min(path) FROM runs WHERE path >= ?", prefix) as string | null;
      while (path?.startsWith(prefix) === true && paths.length <= INDEXED_PATHS_MAX) {
        paths.push(path);
        path = database.value("SELECT min(path) FROM runs WHERE path > ?", path) as string | null;
      }
    }
  }
  return paths.length > INDEXED_PATHS_MAX ? null : paths;
}

/** Returns the range of IDs that may match a filter's time and version; `null` if there is none. */
function idsOf(database: LogDatabase, filter: RunFilter): readonly [low: number, high: number] | null {
  const { version } = filter;
  const ids = idsOfTime(database, filter);
  if (ids === null || version === undefined) return ids;
  const [[low, high] = []] = database.all(
    "SELECT min(first), max(last) FROM versions WHERE substr(hash, 1, ?) = ?",
    version.length,
    version,
  );
  if (typeof low !== "number") return null;
  return [Math.max(ids[0], low), Math.min(ids[1], high as number)];
}

function idsOfTime(
  database: LogDatabase,
  { from, to }: RunFilter,
): readonly [low: number, high: number] | null {
  if (from === undefined && to === undefined) {
    const low = database.value("SELECT min(id) FROM runs") as number | null;
    return low === null ? null : [low, database.value("SELECT max(id) FROM runs") as number];
  }
  const minute = (at: number) => Math.floor(at / MINUTE_MS);
  const [[low, high] = []] = database.all(
    "SELECT min(first), max(last) FROM minutes WHERE minute >= ? AND minute <= ?",
    minute(from ?? 0),
    minute(to ?? Number.MAX_SAFE_INTEGER),
  );
  return typeof low === "number" ? [low, high as number] : null;
}

function foundRun(row: Row): FoundRun {
  const [id, ...columns] = row;
  const [duration, queued] = columns.slice(8) as [number, number];
  const [error, lines, version] = columns.slice(14) as (string | null)[];
  const record = [
    ...columns.slice(0, 8),
    duration / 100,
    queued / 100,
    ...columns.slice(10, 14),
    typeof error === "string" ? JSON.parse(error) : null,
    typeof lines === "string" ? JSON.parse(lines) : [],
    version ?? null,
  ];
  return { id: id as number, record: record as unknown as RunRecord };
}

/** Returns a query for all runs with each trigram of a text; `null` if the text is too short or has a NUL, which ends queries. */
function trigramQuery(text: string): string | null {
  const chars = [...text];
  if (chars.length < TRIGRAM_CHARS || text.includes("\0")) return null;
  const trigrams = new Set<string>();
  const apart = Math.max(1, Math.floor((chars.length - TRIGRAM_CHARS) / TRIGRAMS_MAX));
  for (let start = 0; start <= chars.length - TRIGRAM_CHARS; start += apart) {
    trigrams.add(chars.slice(start, start + TRIGRAM_CHARS).join(""));
  }
  return [...trigrams].map((trigram) => `"${trigram.replaceAll('"', '""')}"`).join(" AND ");
}
