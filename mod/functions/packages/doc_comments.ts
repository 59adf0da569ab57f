/** Reads the doc comments of functions from the source text of a module, because bundles drop comments. */

/** Characters kept of one comment. */
const COMMENT_CHARS_MAX = 4_000;
/** Characters of a module that are searched. */
const SOURCE_CHARS_MAX = 2_000_000;

/** A default export, or a declaration with a name, after a doc comment. */
const DECLARATION =
  /\s*(?:export\s+)?(?:(default)\b|(?:const|let|var|(?:async\s+)?function)\s+([\p{ID_Start}$_][\p{ID_Continue}$]*))/uy;

/** Returns the text of doc comments by the name of what they document. */
export function docComments(source: string): Readonly<Record<string, string>> {
  const text = source.slice(0, SOURCE_CHARS_MAX);
  const found: [name: string, text: string][] = [];
  for (let at = text.indexOf("/**"); at >= 0; at = text.indexOf("/**", at)) {
    const end = text.indexOf("*/", at + 2);
    if (end < 0) break;
    const comment = plainText(text.slice(at + 3, end));
    at = DECLARATION.lastIndex = end + 2;
    const match = DECLARATION.exec(text);
    const name = match?.[1] ?? match?.[2];
    if (name !== undefined && comment !== "") found.push([name, comment]);
  }
  return Object.fromEntries(found);
}

/** Removes the stars at the beginning of lines. */
function plainText(comment: string): string {
  const lines = comment.split(/\r?\n/).map((line) => line.replace(/^\s*\*? ?/, "").trimEnd());
  return lines.join("\n").trim().slice(0, COMMENT_CHARS_MAX);
}
