import assert from "node:assert/strict";
import { optionsOf } from "../../mod/config/options.ts";

const read = (path: string) => Deno.readTextFile(new URL(`../../${path}`, import.meta.url));

/** Cells of the Markdown table whose head begins with `first`. */
function tableRows(markdown: string, first: string): string[][] {
  const lines = markdown.split("\n");
  const head = lines.findIndex((line) => line.startsWith(`| ${first}`));
  assert.notEqual(head, -1, `a table that begins with ${first}`);
  const rows: string[][] = [];
  for (let at = head + 2; lines[at]?.startsWith("|"); at++) {
    rows.push((lines[at] ?? "").split("|").slice(1, -1).map((cell) => cell.trim()));
  }
  return rows;
}

Deno.test("the README's table of options is the options table", async () => {
  const expected = optionsOf("serve").map(([, spec]) => [
    `\`${spec.flag}${spec.placeholder === null ? "" : ` <${spec.placeholder}>`}\``,
    `\`${spec.env}\``,
    spec.defaultText ?? "",
    spec.description,
  ]);
  assert.deepEqual(tableRows(await read("README.md"), "Flag"), expected);
});

Deno.test("the README's table of packages has every package of the import map and no other", async () => {
  const { imports } = JSON.parse(await read("deno.json")) as { imports: Record<string, string> };
  const used = Object.values(imports)
    .map((address) => address.match(/^npm:(@[^/]+\/[^@/]+|[^@/]+)@/)?.[1])
    .filter((name) => name !== undefined);
  const named = tableRows(await read("README.md"), "Package")
    .map(([cell = ""]) => cell.replaceAll("`", ""))
    .filter((name) => !name.startsWith("node:"));
  assert.deepEqual(named.toSorted(), [...new Set(used)].toSorted());
});

Deno.test("what the README tells to run are tasks of deno.json, and it names the version that CI installs", async () => {
  const readme = await read("README.md");
  const { tasks } = JSON.parse(await read("deno.json")) as { tasks: Record<string, string> };
  for (const [, task = ""] of readme.matchAll(/deno(?:@[\d.]+)? task ([\w:]+)/g)) {
    assert.ok(task in tasks, task);
  }
  const ci = await read(".ci/run");
  const version = ci.match(/DENO_VERSION=([\d.]+)/)?.[1];
  const named = new Set([...readme.matchAll(/deno@([\d.]+)/g)].map(([, found]) => found));
  assert.deepEqual([...named], [version]);
});

Deno.test("no task and no document grants everything", async () => {
  const everything = /(?<![\w-])(?:-A|--allow-all)(?![\w-])/;
  for (const path of ["deno.json", "README.md", ".ci/run", "mod/ARCHITECTURE.md"]) {
    assert.doesNotMatch(await read(path), everything, path);
  }
});
