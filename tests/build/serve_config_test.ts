/** The configuration of a clone names the packages that serving needs, as `deno.json` has it now. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { projectDir } from "../../mod/build/payload.ts";
import { SERVE_CONFIG, SERVE_LOCK, serveConfig } from "../../mod/build/serve_config.ts";

Deno.test("deno.serve.json and its lock equal the output of `deno task build:serve`", async () => {
  const { config, lock } = await serveConfig();
  const [there, locked] = await Promise.all(
    [SERVE_CONFIG, SERVE_LOCK].map((name) => Deno.readTextFile(join(projectDir, name))),
  );
  assert.deepEqual(JSON.parse(there ?? ""), JSON.parse(config), "run: deno task build:serve");
  assert.deepEqual(JSON.parse(locked ?? ""), JSON.parse(lock), "run: deno task build:serve");
});

Deno.test("it has the permission sets that its tasks name, and no other", async () => {
  const { tasks, permissions } = JSON.parse((await serveConfig()).config) as {
    readonly tasks: Readonly<Record<string, string>>;
    readonly permissions: object;
  };
  const named = Object.values(tasks).map((command) => /-P=(\w+)/.exec(command)?.[1]);
  assert.deepEqual(Object.keys(permissions).toSorted(), [...new Set(named)].toSorted());
  assert.ok(named.includes("serve") && !named.includes("test"));
});

Deno.test("it contains no dependency that only tests and builds need", async () => {
  const { npm } = JSON.parse(await Deno.readTextFile(join(projectDir, SERVE_LOCK))) as { npm: object };
  const names = Object.keys(npm);
  assert.ok(names.some((name) => name.startsWith("hono@")));
  for (
    const name of ["typescript", "rollup", "playwright-core", "radix-ui", "react", "axe-core"]
  ) {
    assert.deepEqual(names.filter((id) => id.startsWith(`${name}@`)), []);
  }
});
