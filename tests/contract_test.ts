/**
 * Every rule of `docs/contract.md` has a test, every id in a test's name is a rule, and rules marked as not built have none.
 */
import assert from "node:assert/strict";

const testsDir = new URL("./", import.meta.url);
const contract = new URL("../docs/contract.md", testsDir);

interface Rule {
  readonly id: string;
  readonly built: boolean;
}

interface Rulebook {
  readonly prefixes: readonly string[];
  readonly rules: readonly Rule[];
}

/** A rule: its id in bold, then the mark if it is not implemented yet, then its text. */
const RULE = /^- \*\*([A-Z]{2}\d+)\*\* ([*_]\(not built yet\)[*_] )?/gm;

/** Names of tests: the first argument of `Deno.test` or a function such as `browserTest`, the second of `needs`, or the `name` or `rule` of a scenario in a table. */
const TEST_NAME =
  /(?:Deno\.test\(\s*|\.step\(\s*|\bneeds\(\s*\w+,\s*|\w+Test\(\s*|\b(?:name|rule):\s*)(["'`])((?:\\.|(?!\1)[^\\])*)\1/g;

function rulebook(text: string): Rulebook {
  const prefixes = [...text.matchAll(/^## ([A-Z]{2}): /gm)].map(([, prefix]) => prefix ?? "");
  const rules = [...text.matchAll(RULE)].map(([, id = "", mark]) => ({ id, built: mark === undefined }));
  return { prefixes, rules };
}

/** Every way in which rules and tests do not fit together, one line each. `tested` names the file of each id. */
function misfits({ prefixes, rules }: Rulebook, tested: ReadonlyMap<string, string>): string[] {
  const ids = rules.map(({ id }) => id);
  return [
    ...ids.filter((id, at) => ids.indexOf(id) !== at).map((id) => `${id} stands twice`),
    ...ids.filter((id) => !prefixes.includes(id.slice(0, 2))).map((id) => `${id} has no section`),
    ...rules.filter(({ id, built }) => built && !tested.has(id)).map(({ id }) => `${id} has no test`),
    ...rules.filter(({ id, built }) => !built && tested.has(id))
      .map(({ id }) =>
        `${id} is marked as not built and has a test in ${tested.get(id)}: take the mark away`
      ),
    ...[...tested].filter(([id]) => !ids.includes(id)).map(([id, file]) => `${id} in ${file} is no rule`),
  ];
}

/** The files of a folder, with those of the folders in it, whose names match. */
async function* filesIn(dir: URL, name: RegExp): AsyncGenerator<URL> {
  for await (const entry of Deno.readDir(dir)) {
    if (entry.isDirectory) yield* filesIn(new URL(`${entry.name}/`, dir), name);
    else if (name.test(entry.name)) yield new URL(entry.name, dir);
  }
}

/** The ids in names of tests, each with a file that has it. */
async function testedIds(prefixes: readonly string[]): Promise<Map<string, string>> {
  const id = new RegExp(`\\b(?:${prefixes.join("|")})\\d+\\b`, "g");
  const tested = new Map<string, string>();
  for await (const file of filesIn(testsDir, /[._](test|scenarios)\.tsx?$/)) {
    const text = await Deno.readTextFile(file);
    for (const [, , name = ""] of text.matchAll(TEST_NAME)) {
      for (const [found] of name.matchAll(id)) {
        tested.set(found, file.pathname.slice(testsDir.pathname.length));
      }
    }
  }
  return tested;
}

Deno.test("every rule of the contract has a test with its id, and every cited rule exists", async () => {
  const book = rulebook(await Deno.readTextFile(contract));
  assert.ok(book.rules.length > 0);
  assert.deepEqual(misfits(book, await testedIds(book.prefixes)), []);
});

Deno.test("a rule without a test, an outdated mark and an unknown id are reported", () => {
  const book = rulebook([
    "## QA: one", // ids of this text begin with letters that no section of the contract has
    "- **QA1** Tested.",
    "- **QA2** Forgotten.",
    "- **QA3** _(not built yet)_ To come.",
    "- **QA4** _(not built yet)_ There already.",
    "- **QA1** Again.",
    "- **QB1** Elsewhere.",
  ].join("\n"));
  assert.deepEqual(misfits(book, new Map([["QA1", "a"], ["QA4", "b"], ["QA9", "c"], ["QB1", "d"]])), [
    "QA1 stands twice",
    "QB1 has no section",
    "QA2 has no test",
    "QA4 is marked as not built and has a test in b: take the mark away",
    "QA9 in c is no rule",
  ]);
});

Deno.test("rule ids cited in comments are rules and sections of the contract", async () => {
  const { prefixes, rules } = rulebook(await Deno.readTextFile(contract));
  const known = new Set([...prefixes, ...rules.map(({ id }) => id)]);
  let cited = 0;
  for await (const file of filesIn(new URL("../mod/", testsDir), /\.tsx?$/)) {
    const text = await Deno.readTextFile(file);
    for (const [, list = ""] of text.matchAll(/\(((?:[A-Z]{2}\d*)(?:(?:, | to | and )[A-Z]{2}\d+)*)\)/g)) {
      const ids = list.split(/, | to | and /).filter((id) => prefixes.includes(id.slice(0, 2)));
      cited += ids.length;
      assert.deepEqual(ids.filter((id) => !known.has(id)), [], file.pathname);
    }
  }
  assert.ok(cited > 0);
});
