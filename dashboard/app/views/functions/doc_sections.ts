/** Divides a doc comment into its description and its tags. */

export interface DocTag {
  /** Heading of a tag without a name, such as "Returns". */
  readonly label: string;
  /** The parameter or field that the tag documents; otherwise `null`. */
  readonly name: string | null;
  readonly text: string;
  /** Whether the text is source code. */
  readonly code: boolean;
}

export interface DocSections {
  readonly description: string;
  readonly tags: readonly DocTag[];
}

const LABELS: Readonly<Record<string, string>> = {
  return: "Returns",
  returns: "Returns",
  throws: "Throws",
  exception: "Throws",
  example: "Example",
  see: "See",
  deprecated: "Deprecated",
  since: "Since",
};

const NAMED = new Set(["param", "arg", "argument", "property", "prop"]);
/** A tag at the beginning of a line, with its text up to the next tag. */
const TAG = /^@(\w+)[ \t]*/;
/** Name after `@param`, with an optional type before it and an optional hyphen after it. */
const PARAMETER = /^(?:\{[^}]*\}\s*)?(\[[^\]]*\]|\S+)\s*(?:-\s+)?([^]*)$/;
const FENCE = /^```\w*\n([^]*?)\n?```$/;

export function docSections(comment: string): DocSections {
  const sections: string[][] = [[]];
  let fenced = false;
  for (const line of comment.split("\n")) {
    if (line.startsWith("```")) fenced = !fenced;
    if (!fenced && TAG.test(line)) sections.push([]);
    sections.at(-1)?.push(line);
  }
  const [description = "", ...tags] = sections.map((lines) => lines.join("\n").trim());
  return { description, tags: tags.map(tagOf) };
}

function tagOf(text: string): DocTag {
  const [start = "", tag = ""] = TAG.exec(text) ?? [];
  const rest = text.slice(start.length).trim();
  if (NAMED.has(tag)) {
    const [, name = rest, about = ""] = PARAMETER.exec(rest) ?? [];
    // Square brackets mark optional parameters, with a default value after "=".
    return { label: tag, name: name.replace(/^\[([^=\]]*).*\]$/, "$1"), text: about, code: false };
  }
  const code = tag === "example";
  const [, source] = code ? FENCE.exec(rest) ?? [] : [];
  return {
    label: LABELS[tag] ?? `${tag.charAt(0).toUpperCase()}${tag.slice(1)}`,
    name: null,
    text: source ?? withoutType(rest),
    code,
  };
}

function withoutType(text: string): string {
  return text.replace(/^\{(?!@)[^}]*\}\s*/, "");
}

/** Separates source code from text: code spans, and the targets of `{@link}`. */
export function inlineParts(text: string): readonly { readonly text: string; readonly code: boolean }[] {
  return text.split(/(`[^`]+`|\{@link(?:code|plain)?\s[^}]*\})/).map((part) => {
    const link = /^\{@link(?:code|plain)?\s+([^}|\s]+)(?:\s*\|\s*|\s+)?([^}]*)\}$/.exec(part);
    if (link !== null) return { text: link[2]?.trim() || (link[1] ?? ""), code: !link[2]?.trim() };
    return /^`[^`]+`$/.test(part) ? { text: part.slice(1, -1), code: true } : { text: part, code: false };
  }).filter(({ text }) => text !== "");
}
