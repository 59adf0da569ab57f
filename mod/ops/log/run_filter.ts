/** Filter of runs, used by searches and live tails. */

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
  /** `true` selects system functions, `false` the app's. */
  readonly system?: boolean;
}

/** System functions are in modules whose names start with an underscore. */
export function isServicePath(udfPath: string): boolean {
  return udfPath.startsWith("_");
}

/** Whether a filter matches a function by path and kind. */
export function admitsFunction(
  { functions, kinds, system }: RunFilter,
  { path, kind }: { readonly path: string; readonly kind: number },
): boolean {
  if (kinds !== undefined && !kinds.includes(kind)) return false;
  if (system !== undefined && isServicePath(path) !== system) return false;
  return functions === undefined ||
    functions.some((name) => name.endsWith("*") ? path.startsWith(name.slice(0, -1)) : path === name);
}

export function hasText(wanted: string, text: string): boolean {
  return text.toLowerCase().includes(wanted.toLowerCase());
}
