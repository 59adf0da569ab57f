/** Parses JSON as people write it: `JSON.parse` silently drops all but the last of fields with the same name. */

/** Strings, and the characters that structure objects and arrays. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:]/g;

export interface DuplicateKey {
  readonly name: string;
  /** Position of the second occurrence in the text. */
  readonly from: number;
  readonly to: number;
}

/** Returns the first field name that occurs twice in an object of a valid JSON text, or `null`. */
export function duplicateKey(text: string): DuplicateKey | null {
  /** Field names of the open objects; `null` for arrays. */
  const open: (Set<string> | null)[] = [];
  let last = { token: "", from: 0 };
  for (const { 0: token, index: from } of text.matchAll(TOKENS)) {
    if (token === "{") open.push(new Set());
    else if (token === "[") open.push(null);
    else if (token === "}" || token === "]") open.pop();
    else if (token !== ":") last = { token, from };
    else {
      const name = JSON.parse(last.token) as string;
      const names = open.at(-1);
      if (names?.has(name)) return { name, from: last.from, to: last.from + last.token.length };
      names?.add(name);
    }
  }
  return null;
}

/** Parses a JSON text. Throws a `SyntaxError` for invalid JSON and for objects with two fields of the same name. */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  const duplicate = duplicateKey(text);
  if (duplicate !== null) throw new SyntaxError(`The field "${duplicate.name}" occurs twice`);
  return value;
}

/** Like {@linkcode parseJson}, for an object. */
export function parseObject(text: string): Readonly<Record<string, unknown>> {
  const value = parseJson(text);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Readonly<Record<string, unknown>>;
  }
  throw new SyntaxError("A JSON object is required");
}
