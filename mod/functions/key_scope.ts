/** The scope of API keys: which functions and routes of the app a key may call. */
import type { Identity, KeyKind } from "./identity.ts";
import type { Outcome } from "./outcome.ts";

/**
 * Returns the error of a client's call outside of the scope of its key; otherwise `null`. Functions of the service are in no
 * scope.
 */
export function refuseKey({ key }: Identity, kind: KeyKind, udfPath: string): Outcome | null {
  if (key === undefined) return null;
  const permitted = !udfPath.startsWith("_") && key.kinds.includes(kind) &&
    key.functions.some((pattern) => matches(pattern, udfPath));
  if (permitted) return null;
  const message = `The API key "${key.name}" may not call "${udfPath.slice(0, 200)}"`;
  const data = { code: "key_not_permitted", data: null };
  return { ok: false, error: { kind: "user", message, data }, logLines: [] };
}

/** Whether every path of a pattern matches one of the others. */
export function isCovered(pattern: string, by: readonly string[]): boolean {
  return by.some((wide) =>
    pattern.endsWith("*")
      ? wide.endsWith("*") && pattern.startsWith(wide.slice(0, -1))
      : matches(wide, pattern)
  );
}

function matches(pattern: string, path: string): boolean {
  return pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}

/** A pattern: printable, not of the service, a `*` only at the end. */
export const KEY_PATTERN = /^(?!_|$)[^\p{C}*]*\*?$/u;

/** Throws `TypeError` for a string that is no pattern. */
export function checkKeyPattern(text: string): void {
  if (KEY_PATTERN.test(text)) return;
  throw new TypeError(
    `Cannot use "${text}" as a pattern of functions: expected one such as tasks:list, tasks:* or *`,
  );
}
