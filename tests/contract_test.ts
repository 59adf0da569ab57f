/** Every rule of contract.md has a test, and every id in a test's name is a rule. */
import assert from "node:assert/strict";

const testsDir = new URL("./", import.meta.url);

async function* testFiles(dir: URL): AsyncGenerator<URL> {
  for await (const entry of Deno.readDir(dir)) {
    if (entry.isDirectory) yield* testFiles(new URL(`${entry.name}/`, dir));
    else if (/[._]test\.tsx?$/.test(entry.name)) yield new URL(entry.name, dir);
  }
}

/** Names of tests: the first argument of `Deno.test`, or the `name` of a scenario in a table. */
const TEST_NAME = /(?:Deno\.test\(\s*|\.step\(\s*|\bname:\s*)(["'`])((?:\\.|(?!\1)[^\\])*)\1/g;

Deno.test("every rule of the contract has a test that carries its id, and the other way round", async () => {
  const contract = await Deno.readTextFile(new URL("contract.md", testsDir));
  const prefixes = [...contract.matchAll(/^## ([A-Z]{2}): /gm)].map(([, prefix]) => prefix ?? "");
  const listed = [...contract.matchAll(/^- \*\*([A-Z]{2}\d+)\*\* /gm)].map(([, id]) => id ?? "");
  assert.equal(new Set(listed).size, listed.length, "an id stands twice");
  assert.ok(listed.every((id) => prefixes.includes(id.slice(0, 2))), "an id without a section");

  const id = new RegExp(`\\b(?:${prefixes.join("|")})\\d+\\b`, "g");
  const tested = new Map<string, string>();
  for await (const file of testFiles(testsDir)) {
    const text = await Deno.readTextFile(file);
    for (const [, , name = ""] of text.matchAll(TEST_NAME)) {
      for (const [found] of name.matchAll(id)) {
        tested.set(found, file.pathname.slice(testsDir.pathname.length));
      }
    }
  }
  assert.deepEqual(listed.filter((rule) => !tested.has(rule)), [], "rules without a test");
  assert.deepEqual([...tested].filter(([rule]) => !listed.includes(rule)), [], "ids that are no rules");
});
