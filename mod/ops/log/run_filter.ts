/** Which runs somebody wants to see. The same filter searches what is kept and picks from what comes. */

/** All parts have to hold; what is absent does not matter. Kinds and outcomes are positions in their lists. */
export interface RunFilter {
  /** Function paths; one that ends in `*` stands for all that begin with what is before it. */
  readonly functions?: readonly string[];
  readonly kinds?: readonly number[];
  readonly outcomes?: readonly number[];
  /** The lowest level that at least one line has. */
  readonly level?: number;
  /** In the error or a line, whatever the case. */
  readonly text?: string;
  /** Runs that ended at or after this. */
  readonly from?: number;
  /** Runs that ended before this. */
  readonly to?: number;
  /** A principal; `null` for anonymous callers. */
  readonly caller?: string | null;
  readonly request?: number;
  /** Whether functions of the service itself are meant, or those of the app. */
  readonly system?: boolean;
}

/** Functions of the service have modules whose names begin so. */
export function isServicePath(udfPath: string): boolean {
  return udfPath.startsWith("_");
}

/** Whether a filter lets functions through by their path and kind. */
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
