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

/** README, CONTRIBUTING, the architecture and all files in `docs/`. */
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

/** The file named in the first line of a TypeScript block, and whether the block is added to it; `null` without a name. */
function fileOf({ text }: CodeBlock): { readonly name: string; readonly isAddition: boolean } | null {
  const [, addition, name] = /^\/\/ (Add to )?(\S+\.tsx?)\n/.exec(text) ?? [];
  return name === undefined ? null : { name, isAddition: addition !== undefined };
}

/** Cells of the tables whose header rows start with `first`, without those rows. */
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

/** Pages that each show a complete app; the code of all other pages belongs to one app, `guide`. */
const APP_PAGES: Readonly<Record<string, string>> = {
  "README.md": "readme",
  "docs/quickstart.md": "quickstart",
  "docs/tutorial.md": "tutorial",
  "docs/server_rendering.md": "server_rendering",
};
/** Apps of a template, without the files that their page asks readers to delete. */
const FROM_TEMPLATE: Readonly<
  Record<string, { readonly template: "react" | "showcase"; readonly deleted: readonly string[] }>
> = {
  quickstart: { template: "react", deleted: [] },
  tutorial: {
    template: "react",
    deleted: ["functions/tasks.ts", "src/tasks.tsx", "tests/tasks.test.ts"],
  },
  showcase: { template: "showcase", deleted: [] },
};

/** The apps of the documentation by name, each with its files by path. Every block of TypeScript is in one of them. */
export async function documentedApps(): Promise<Map<string, Map<string, string>>> {
  const apps = new Map<string, Map<string, string>>();
  for (const [app, { template, deleted }] of Object.entries(FROM_TEMPLATE)) {
    const files = await filesOf(`templates/${template}`, ["functions", "src", "tests"]);
    for (const name of deleted) assert.ok(files.delete(name), name);
    apps.set(app, files);
  }
  apps.set("server_rendering", await filesOf("examples/next", ["functions"]));
  const shown = new Set<string>();
  const additions: (() => void)[] = [];
  for (const page of (await pages()).filter((path) => path === "README.md" || path.startsWith("docs/"))) {
    const app = APP_PAGES[page] ?? "guide";
    const files = apps.get(app) ?? new Map<string, string>();
    apps.set(app, files);
    for (const block of await codeBlocks(page)) {
      if (block.language !== "ts" && block.language !== "tsx") continue;
      const file = fileOf(block);
      assert.ok(file !== null, `a block without a file name in ${page}: ${block.text}`);
      const { name, isAddition } = file;
      if (isAddition) {
        additions.push(() => {
          assert.ok(files.has(name), `${page} adds to ${name}`);
          files.set(name, files.get(name) + block.text);
        });
      } else {
        assert.ok(!shown.has(`${app}/${name}`), `${name} appears twice, the second time in ${page}`);
        shown.add(`${app}/${name}`);
        files.set(name, block.text);
      }
    }
  }
  for (const add of additions) add();
  return apps;
}

/** Files in folders of a template or an example. */
async function filesOf(app: string, folders: readonly string[]): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const folder of folders) {
    for await (const { name } of Deno.readDir(`${repository}/${app}/${folder}`)) {
      files.set(`${folder}/${name}`, await readPage(`${app}/${folder}/${name}`));
    }
  }
  return files;
}
