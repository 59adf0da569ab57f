/**
 * Finds out without parsing whether fields of two documents are equal: the fields are in the common prefix of both JSON
 * strings. Fields that change often are usually last.
 */

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const BACKSLASH = 92;
const [BRACE, BRACE_END, BRACKET, BRACKET_END] = [123, 125, 91, 93];

/** Returns `false` if this is unknown. Both strings must come from `JSON.stringify`. */
export function hasFieldsInCommonPrefix(a: string, b: string, fields: ReadonlySet<string>): boolean {
  let missing = fields.size;
  let depth = 0;
  /** Start and end of the current field's name; -1 if unknown. */
  let [nameAt, nameEnd] = [-1, -1];
  for (let at = 0; at < a.length; at++) {
    const code = a.charCodeAt(at);
    if (code !== b.charCodeAt(at)) return false;
    if (code === QUOTE) {
      const begin = at + 1;
      for (at = begin; a.charCodeAt(at) !== QUOTE; at++) {
        if (at >= a.length || a.charCodeAt(at) !== b.charCodeAt(at)) return false;
        if (a.charCodeAt(at) === BACKSLASH && a.charCodeAt(++at) !== b.charCodeAt(at)) return false;
      }
      if (b.charCodeAt(at) !== QUOTE) return false;
      if (depth === 1 && nameAt < 0) [nameAt, nameEnd] = [begin, at];
    } else if (code === BRACE || code === BRACKET) depth++;
    else if (depth === 1 && (code === COMMA || code === BRACE_END)) {
      if (fields.has(a.slice(nameAt, nameEnd)) && --missing === 0) return true;
      nameAt = -1;
      if (code === BRACE_END) return false;
    } else if (code === BRACE_END || code === BRACKET_END) depth--;
    else if (code === COLON && nameAt < 0) return false;
  }
  return false;
}
