/**
 * Tells from the texts of two documents that some of their fields are the same, without parsing either: they begin alike, and
 * the fields are in what is alike. Fields that change often mostly stand last, because they were the last to be written.
 */

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const BACKSLASH = 92;
const [BRACE, BRACE_END, BRACKET, BRACKET_END] = [123, 125, 91, 93];

/** `false` when it cannot be told. Both are texts that `JSON.stringify` made of objects. */
export function hasFieldsInCommonPrefix(a: string, b: string, fields: ReadonlySet<string>): boolean {
  let missing = fields.size;
  let depth = 0;
  /** Where the name of the present field begins, and where it ends; -1 before that. */
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
