/** Differences between a stored document and what the schema makes of it, for error messages. */

/** A path in a document with the stored value and the schema's value; `undefined` means none. */
export interface Difference {
  readonly path: readonly (string | number)[];
  readonly stored: unknown;
  readonly made: unknown;
}

/** Longest value in a message. */
const SHOWN_CHARS = 60;

/** Returns the first difference, or `null`. Ignores the order of fields. */
export function firstDifference(stored: unknown, made: unknown): Difference | null {
  if (stored === made) return null;
  if (typeof stored !== "object" || typeof made !== "object" || stored === null || made === null) {
    return { path: [], stored, made };
  }
  if (Array.isArray(stored) !== Array.isArray(made)) return { path: [], stored, made };
  const [before, after] = [stored, made] as [Record<string, unknown>, Record<string, unknown>];
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const inner = firstDifference(before[key], after[key]);
    if (inner !== null) {
      return { ...inner, path: [Array.isArray(stored) ? Number(key) : key, ...inner.path] };
    }
  }
  return null;
}

/** Describes the schema's effect, to follow "it would". */
export function differenceText({ path, stored, made }: Difference): string {
  const field = `"${pathText(path)}"`;
  if (made === undefined) return `leave out ${field}, and ${shown(stored)} is stored`;
  return stored === undefined
    ? `set ${field} to ${shown(made)}, which is not stored`
    : `set ${field} to ${shown(made)}, and ${shown(stored)} is stored`;
}

export function adviceText({ path, stored, made }: Difference): string {
  const [field = ""] = path;
  const value = path.length === 1 && made !== undefined ? shown(made) : "...";
  const first = stored === undefined && path.length === 1
    ? `make "${field}" optional`
    : "keep the schema as it was";
  return `Reads give documents as they are stored, so ${first}, change these documents in a mutation ` +
    `(ctx.db.patch(id, { "${field}": ${value} })), then apply this schema`;
}

function pathText(path: Difference["path"]): string {
  return path.reduce<string>(
    (text, step) => typeof step === "number" ? `${text}[${step}]` : text === "" ? step : `${text}.${step}`,
    "",
  );
}

function shown(value: unknown): string {
  let text: string;
  try {
    text = JSON.stringify(value) ?? String(value);
  } catch {
    text = "something that is not JSON";
  }
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS - 3)}...` : text;
}
