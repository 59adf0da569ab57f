/** Filter of runs, used by searches and live tails. */
import { type RunRecord, searchedText, VERSION_INDEX } from "./run_record.ts";

/** All present conditions must hold. Kinds and outcomes are indexes of their lists. */
export interface RunFilter {
  /** Function paths; a trailing `*` matches any suffix. */
  readonly functions?: readonly string[];
  readonly kinds?: readonly number[];
  readonly outcomes?: readonly number[];
  /** Minimum level of the run's highest log line. */
  readonly level?: number;
  /** Substring of the error or a log line, ignoring case. */
  readonly text?: string;
  /** Runs that ended at or after this time. */
  readonly from?: number;
  /** Runs that ended before this time. */
  readonly to?: number;
  /** A principal; `null` for anonymous callers. */
  readonly caller?: string | null;
  readonly request?: number;
  /** Minimum duration of the function itself. */
  readonly minMs?: number;
  /** Beginning of the hash of the version that served the run. */
  readonly version?: string;
  /** `true` selects system functions, `false` the app's. */
  readonly system?: boolean;
}

/** System functions are in modules whose names start with an underscore. */
export function isServicePath(udfPath: string): boolean {
  return udfPath.startsWith("_");
}

export function admitsRun(filter: RunFilter, run: RunRecord): boolean {
  const [at, path, kind, caller, outcome, level, request, , durationMs] = run;
  const { functions, kinds, outcomes, text, from = -Infinity, to = Infinity, system } = filter;
  return (functions === undefined || functions.some((name) => matchesPath(name, path))) &&
    (kinds === undefined || kinds.includes(kind)) &&
    (outcomes === undefined || outcomes.includes(outcome)) &&
    (filter.level === undefined || level >= filter.level) &&
    (filter.caller === undefined || filter.caller === caller) &&
    (filter.request === undefined || filter.request === request) &&
    (filter.minMs === undefined || durationMs >= filter.minMs) &&
    (filter.version === undefined || run[VERSION_INDEX]?.startsWith(filter.version) === true) &&
    (system === undefined || isServicePath(path) === system) &&
    at >= from && at < to &&
    (text === undefined || mentionsText(run, text));
}

function matchesPath(name: string, path: string): boolean {
  return name.endsWith("*") ? path.startsWith(name.slice(0, -1)) : path === name;
}

/** Whether the error or a log line contains a text, ignoring case. */
export function mentionsText(run: RunRecord, text: string): boolean {
  return searchedText(run[14], run[15]).toLowerCase().includes(text.toLowerCase());
}
