/** The start of a clone from bundles. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { copyTree } from "../../mod/npm/build/copy_tree.ts";
import { projectDir } from "../../mod/build/payload.ts";

/** Copies the parts of the project that print the help of `serve`. */
async function copyClone(): Promise<string> {
  const clone = await Deno.makeTempDir();
  await copyTree(join(projectDir, "mod"), join(clone, "mod"), (path) => path !== ".bundles/");
  for (const file of ["main.ts", "cli.ts", "deno.json", "deno.serve.json", "deno.serve.lock"]) {
    await Deno.copyFile(join(projectDir, file), join(clone, file));
  }
  return clone;
}

interface Started {
  readonly help: string;
  readonly warnings: string;
  readonly bundles: readonly string[];
}

/** Returns the output of `serve --help` and the names of the bundles. */
async function helpOf(clone: string, env: Readonly<Record<string, string>>): Promise<Started> {
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--quiet", "--no-prompt", "--config", join(clone, "deno.serve.json"), "-P=serve"],
      ...[join(clone, "mod/build/start.ts"), "--help"],
    ],
    cwd: clone,
    env,
  }).output();
  const folder = join(clone, "mod/.bundles");
  return {
    help: new TextDecoder().decode(stdout),
    warnings: new TextDecoder().decode(stderr),
    bundles: Deno.statSync(folder).isDirectory ? readdirSync(folder).toSorted() : [],
  };
}

Deno.test("a clone starts from its bundles", async (t) => {
  const clone = await copyClone();
  const folder = join(clone, "mod/.bundles");
  const cache = await Deno.makeTempDir();
  const env = { DENO_DIR: cache };
  try {
    const info = await new Deno.Command(Deno.execPath(), { args: ["info", "--json"] }).output();
    const { npmCache } = JSON.parse(new TextDecoder().decode(info.stdout)) as { readonly npmCache: string };
    await Deno.symlink(npmCache, join(cache, "npm"));
    // Another start builds bundles, and removes those that are listed but whose target is missing.
    await Deno.mkdir(join(folder, "incomplete"), { recursive: true });
    await Deno.mkdir(join(folder, "built.1"));
    await Deno.symlink(join(clone, "gone"), join(folder, "removed"));
    const first = await helpOf(clone, env);
    const [own = "", ...others] = first.bundles.filter((name) => name !== "built.1");

    await t.step(
      "the first start lists the imports of all bundles, so that processes do not keep syntax trees",
      () => {
        // The runtime's own cache.
        using database = new DatabaseSync(join(cache, "dep_analysis_cache_v2"), { readOnly: true });
        const listed = database.prepare("SELECT specifier FROM moduleinfocache").all().map((row) =>
          String(row["specifier"]).split("/mod/").at(-1)
        );
        // `--help` loads none of these.
        const bundles = readdirSync(join(folder, own)).map((name) => `.bundles/${own}/${name}`);
        const zod = ["service", "app"].map((instance) => `functions/isolate/zod/zod.js?${instance}`);
        assert.deepEqual([...bundles, ...zod].filter((name) => !listed.includes(name)), []);
        assert.ok(bundles.includes(`.bundles/${own}/mod_server_isolate_entry.js`));
      },
    );

    await t.step("it builds them at the first start and after each change of its sources", async () => {
      assert.match(first.help, /--data/);
      assert.equal(first.warnings, "");
      assert.deepEqual([first.bundles.length, others], [2, []], "the new ones, and those of the other start");
      await Deno.remove(join(folder, "built.1"));
      assert.deepEqual(await helpOf(clone, env), { ...first, bundles: [own] });
      // A server still runs from the first ones.
      using server = await Deno.open(join(folder, own, "main.js"));
      await server.lock(false);
      await copyTree(join(folder, own), join(folder, "between"));
      await Deno.writeTextFile(join(clone, "mod/limits.ts"), "//", { append: true });
      const { help, bundles } = await helpOf(clone, env);
      assert.equal(help, first.help);
      assert.equal(bundles.length, 2, "those between the first and the newest were removed");
      assert.ok(bundles.includes(own) && !bundles.includes("between"));
    });

    await t.step("it starts from its sources if it cannot build them", async () => {
      await Deno.remove(folder, { recursive: true });
      await Deno.writeTextFile(folder, "not a folder");
      const { help, warnings, bundles } = await helpOf(clone, env);
      assert.match(help, /--data/);
      assert.match(warnings, /WARN {2}Cannot build bundles; starting from the sources error=/);
      assert.deepEqual(bundles, []);
    });

    await t.step(
      "it starts from its sources if the bundler fails, and logs the bundler's output",
      async () => {
        await Deno.remove(folder);
        await Deno.writeTextFile(
          join(clone, "mod/build/bundles.ts"),
          `Deno.mkdirSync(\`${clone}/\${Deno.args[0]}\`);\nthrow new Error("a bug");\n`,
        );
        const { help, warnings, bundles } = await helpOf(clone, env);
        assert.match(help, /--data/);
        assert.match(
          warnings,
          /WARN {2}Cannot build bundles; starting from the sources exitCode=1\n[^]*a bug/,
        );
        assert.deepEqual(bundles, [], "unfinished bundles are removed");
      },
    );
  } finally {
    for (const folder of [clone, cache]) await Deno.remove(folder, { recursive: true });
  }
});
