/** The documentation as tests read it: its pages, their code blocks and tables. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

/** Folder of the repository. */
export const repository: string = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

export interface CodeBlock {
  readonly page: string;
  readonly language: string;
  readonly text: string;
}

/** The text of a file of the repository. */
export function readPage(path: string): Promise<string> {
  return Deno.readTextFile(`${repository}/${path}`);
}

/** What stands at the top of the repository and in `docs/`, and the map. */
export async function pages(): Promise<string[]> {
  const found = ["README.md", "CONTRIBUTING.md", "mod/ARCHITECTURE.md"];
  for await (const { name } of Deno.readDir(`${repository}/docs`)) {
    if (name.endsWith(".md")) found.push(`docs/${name}`);
  }
  return found.sort();
}

/** The code blocks of one page, in order. */
export async function codeBlocks(page: string): Promise<CodeBlock[]> {
  const text = await readPage(page);
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```/gm)]
    .map(([, language = "", block = ""]) => ({ page, language, text: block }));
}

/** The file that a block of TypeScript is, which its first line names; `null` for one that is no file. */
function fileName({ text }: CodeBlock): string | null {
  return /^\/\/ (\S+\.tsx?)\n/.exec(text)?.[1] ?? null;
}

/** Cells of the tables whose heads begin with `first`, without those heads. */
export function tableRows(markdown: string, first: string): string[][] {
  const rows: string[][] = [];
  const lines = markdown.split("\n");
  for (let at = 0; at < lines.length; at++) {
    if (!cells(lines[at] ?? "").join("|").startsWith(first)) continue;
    for (at += 2; lines[at]?.startsWith("|"); at++) rows.push(cells(lines[at] ?? ""));
  }
  return rows;
}

function cells(line: string): string[] {
  return line.startsWith("|") ? line.split(/(?<!\\)\|/).slice(1, -1).map((cell) => cell.trim()) : [];
}

/**
 * The apps of the documentation by folder, as files by path: that of the first page, and the one that all other pages build
 * together. Every block of TypeScript is a file of one of them.
 */
export async function documentedApps(): Promise<Record<"first" | "guide", Map<string, string>>> {
  const apps = { first: new Map<string, string>(), guide: new Map<string, string>() };
  for (const page of (await pages()).filter((path) => path.startsWith("docs/"))) {
    const app = page === "docs/first_app.md" ? apps.first : apps.guide;
    for (const block of await codeBlocks(page)) {
      if (block.language !== "ts" && block.language !== "tsx") continue;
      const name = fileName(block);
      assert.ok(name !== null, `a block without a file name in ${page}: ${block.text}`);
      assert.ok(!app.has(name), `${name} stands twice, the second time in ${page}`);
      app.set(name, block.text);
    }
  }
  return apps;
}
