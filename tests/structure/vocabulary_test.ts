/** Comments, strings, documentation and names use the vocabulary of CONTRIBUTING.md. */
import assert from "node:assert/strict";
import { repository } from "../docs/pages.ts";

/** Files with text of others, or generated from files that are checked. */
const NOT_OURS =
  /(?:^|\/)(?:dist|built|vendor|node_modules)\/|\/zod\/zod\.js$|\/sdk\/sdk\.js$|\/public\/app\.js$/;

/** Section of CONTRIBUTING.md that lists the words to avoid. */
const WORD_LIST = /^### Language$[^]*?(?=^## )/m;

/** Patterns to avoid, each with the words to use instead. */
const RULES: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\b(?:told|tells?|telling)\b/i, "report, notify, return, distinguish"],
  [
    /\b(?:whoever|whosoever|whatever|somebody|everybody|nobody has to)\b/i,
    "the caller, the client, a user, no one",
  ],
  [/\bstands? (?:in|at|for|beside|still|before|behind|by)\b|\bstanding by\b/i, "is in, is stored, appears"],
  [/\banew\b/i, "again, restart, re-create"],
  [/\b(?:go(?:es)?|went) on\b/i, "continue"],
  [/\bfor so long\b|\b(?:since|until) when\b|\bby then\b/i, "a duration, a time or a deadline"],
  [/\blets? go\b|\bgives? way\b|\bgiven back\b|\bgives? back\b/i, "release, yield, return"],
  [/^\W*(?:What|Who|Whom|Whose)\b(?![^.?]*\?)/, "a noun as the subject"],
  [/\bof (?:which|whom)\b/i, "whose, or a second sentence"],
  [/\bunder way\b/i, "in flight, in progress, running"],
  [/\btid(?:y|ies|ied)\b|\bbrought\b/i, "clean up; fetch, include"],
  [/\b(?:is|are) to be\b/i, "must be"],
  [/\bcounts? more\b/i, "takes precedence"],
  [/\bas a text\b|\bnamed by a text\b/i, "as a string"],
];

/** Parts of names that have standard terms. */
const NAMES: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/anew[A-Z]|[a-z]Anew/, "again"],
  [/^tells?[A-Z]|^told|[a-z]Told|TOLD/, "notify, report, publish"],
  [/leftOut|leaveOut/i, "omitted, suppressed, skipped"],
  [/underWay/i, "inFlight, running"],
  [/giveWay|letGo/i, "evict, yield, release"],
  [/^waves?$|^wave[A-Z]|[a-z]Wave/, "batch"],
  [/whoever|somebody|nobody/i, "caller, client, user"],
  [/predecessor|successor/i, "oldProcess, newProcess"],
  [/wakefulness/i, "adaptiveSpinner"],
];

const WORDS_OF_SENTENCE_MAX = 32;

interface Line {
  readonly at: string;
  readonly text: string;
}

/** Files that are checked, relative to the repository. */
async function* coveredFiles(folder = ""): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(`${repository}/${folder}`)) {
    const path = `${folder}${name}`;
    if (name.startsWith(".") || ["data", "coverage"].includes(path)) continue;
    if (NOT_OURS.test(isDirectory ? `${path}/` : path)) continue;
    if (isDirectory) yield* coveredFiles(`${path}/`);
    else if (/\.(?:tsx?|m?js|md)$/.test(name)) yield path;
  }
}

/** Lines of prose: Markdown outside of code, comments, and strings with at least two words. */
function prose(file: string, source: string): Line[] {
  const lines: Line[] = [];
  let isCode = false;
  for (const [index, line] of source.split("\n").entries()) {
    const at = `${file}:${index + 1}`;
    if (file.endsWith(".md")) {
      if (/^\s*(?:```|~~~)/.test(line)) isCode = !isCode;
      else if (!isCode) lines.push({ at, text: line.replaceAll(/`[^`]*`/g, "x") });
      continue;
    }
    const comment = /^\s*(?:\/\/|\/?\*+)\s?(.*?)(?:\*\/)?\s*$/.exec(line)?.[1];
    const strings = [...line.matchAll(/"((?:[^"\\]|\\.){12,})"|`((?:[^`\\]|\\.){12,})`/g)]
      .map(([, quoted, template]) => quoted ?? template ?? "").filter((text) => /[a-z] [a-z]/i.test(text));
    if (comment !== undefined) lines.push({ at, text: comment.replaceAll(/`[^`]*`|\{@\w+ [^}]*\}/g, "x") });
    else for (const text of strings) lines.push({ at, text });
  }
  return lines;
}

/** Names that a file declares, and its own. */
function names(file: string, source: string): Line[] {
  const own = file.split("/").at(-1)?.replace(/\.\w+$/, "") ?? "";
  const declared = [
    ...source.matchAll(/\b(?:function\*?|const|let|class|interface|type|enum) (\w+)/g),
    ...source.matchAll(
      /^ +(?:(?:static|readonly|async|get|set|private|protected|override) )*#?(\w+)[?!]?[(:<=]/gm,
    ),
    ...source.matchAll(/^ +(?:readonly )?#(\w+) = /gm),
  ];
  return [own, ...declared.map(([, name = ""]) => name)].map((text) => ({ at: file, text }));
}

function isLong(text: string): boolean {
  return text.split(/(?<=[.!?:;])\s|\|/).some((sentence) =>
    sentence.split(/\s+/).length > WORDS_OF_SENTENCE_MAX
  );
}

function findings(file: string, source: string): string[] {
  const found: string[] = [];
  const text = file === "CONTRIBUTING.md" ? source.replace(WORD_LIST, "") : source;
  for (const { at, text: line } of prose(file, text)) {
    for (const [pattern, instead] of RULES) {
      const [word] = pattern.exec(line) ?? [];
      if (word !== undefined) found.push(`${at}: "${word.trim()}"; write: ${instead}`);
    }
    if (isLong(line)) found.push(`${at}: a sentence of more than ${WORDS_OF_SENTENCE_MAX} words`);
  }
  if (file.endsWith(".md")) return found;
  for (const { at, text: name } of names(file, source)) {
    for (const [pattern, instead] of NAMES) {
      if (pattern.test(name)) found.push(`${at}: the name "${name}"; write: ${instead}`);
    }
  }
  return found;
}

Deno.test("comments, strings, documentation and names use the standard vocabulary", async () => {
  const found: string[] = [];
  let files = 0;
  for await (const file of coveredFiles()) {
    files++;
    found.push(...findings(file, await Deno.readTextFile(`${repository}/${file}`)));
  }
  assert.ok(files > 300, `${files} files are checked`);
  assert.deepEqual(found, [], "see the section Language in CONTRIBUTING.md");
});

Deno.test("the vocabulary check finds words in comments, strings, Markdown and names", () => {
  // Hyphens keep these samples out of the check of this file.
  const count = (file: string, source: string) => findings(file, source.replaceAll("-", "")).length;
  assert.equal(count("a.ts", "/** To-ld of each commit. */\n"), 1);
  assert.equal(count("a.ts", 'log("the server go-es on without it");\n'), 1);
  assert.equal(count("a.ts", "export const beginA-new = 1;\n"), 1);
  assert.equal(count("a.ts", "class A {\n  #wasTo-ld = false;\n  te-llAll(): void {}\n}\n"), 2);
  assert.equal(count("a.ts", "// `to-ld` is a name, and const a-new = 1 is code\nconst a-new = 1;\n"), 1);
  assert.equal(count("a.md", "Wh-at is read is remembered.\n\n```ts\n// whoe-ver\n```\n"), 1);
  assert.equal(count("a.md", "Wh-at is a segment? A file.\n"), 0);
  assert.equal(count("a.md", `${"word ".repeat(33)}.\n`), 1);
});

/** Classes of one name. Each entry needs a reason. */
const SHARED_CLASS_NAMES: Readonly<Record<string, string>> = {
  TestServer: "the same interface in Deno and in Node",
};

Deno.test("no two exported classes share a name", async () => {
  const files = new Map<string, string>();
  const repeated: string[] = [];
  for await (const file of sourceFiles("mod")) {
    const source = await Deno.readTextFile(`${repository}/${file}`);
    for (const [, name = ""] of source.matchAll(/^export (?:abstract )?class (\w+)/gm)) {
      const other = files.get(name);
      if (other !== undefined && SHARED_CLASS_NAMES[name] === undefined) {
        repeated.push(`${name}: ${other} and ${file}`);
      }
      files.set(name, file);
    }
  }
  assert.ok(files.size > 100);
  assert.deepEqual(repeated, []);
});

async function* sourceFiles(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(`${repository}/${folder}`)) {
    if (isDirectory) yield* sourceFiles(`${folder}/${name}`);
    else if (name.endsWith(".ts")) yield `${folder}/${name}`;
  }
}
