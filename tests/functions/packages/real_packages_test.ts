/** Packages of the npm registry, installed by npm beside an app's functions, in a query, a mutation and an action. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { checkTypes } from "../../../mod/server/dev/type_check.ts";
import { RealHost } from "../host/support/real_host.ts";
import { needs, npm } from "../../support/services.ts";

/** A package with ES modules only, one with CommonJS only, and a CommonJS package that uses `process` and `crypto`. */
const PACKAGES = [
  "nanoid@5.1.6",
  "date-fns@4.1.0",
  "ms@2.1.3",
  "lodash@4.17.21",
  "jsonwebtoken@9.0.3",
  "semver@7.7.3",
];
/** For type checks and tests, which run outside of isolates. */
const OURS = ["zod@4.6.7", "croner@11.0.1"];

const APP = `
  import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
  import { addDays } from "date-fns";
  import jwt from "jsonwebtoken";
  import fp from "lodash/fp.js";
  import ms from "ms";
  import { nanoid } from "nanoid";

  const all = () => [
    nanoid().length,
    addDays(new Date(0), 1).toISOString(),
    fp.chunk(2, [1, 2, 3]),
    ms("2 days"),
    Object.keys(Object(jwt.verify(jwt.sign({ a: 1 }, "secret"), "secret"))),
  ];
  export const ask = untypedQuery(all);
  export const change = untypedMutation(all);
  export const act = untypedAction(async (ctx) => {
    const { default: semver } = await import("semver");
    return [semver.gt("2.0.0", "1.0.0"), all()];
  });
`;
const RESULT = [21, "1970-01-02T00:00:00.000Z", [[1, 2], [3]], 172_800_000, ["a", "iat"]];

Deno.test(needs(npm, "real packages, with dependencies and CommonJS parts"), async (t) => {
  await using host = await RealHost.start({});
  const { dir } = host;
  await Deno.writeTextFile(`${dir}/package.json`, `{"private": true}`);
  const install = await new Deno.Command("npm", {
    args: ["install", "--no-audit", "--no-fund", "--ignore-scripts", ...PACKAGES, ...OURS],
    cwd: dir,
  }).output();
  assert.ok(install.success, new TextDecoder().decode(install.stderr));
  await host.write("a.ts", APP);

  await t.step("work in every kind of function after a reload", async () => {
    assert.deepEqual(await host.host.swaps.reload(), { ok: true });
    assert.deepEqual(await host.mutate("a:change"), RESULT);
    assert.deepEqual(await host.query("a:ask"), RESULT);
    assert.deepEqual(await host.act("a:act"), [true, RESULT]);
  });

  await t.step("bring their types to the check of --dev", async () => {
    await host.write("b.ts", `import ms from "ms"; export const wrong: string = ms("2 days");`);
    const result = await checkTypes(`${dir}/functions`, new AbortController().signal);
    assert.ok(result?.ok === false);
    assert.match(result.report, /Type 'number' is not assignable to type 'string'/);
    assert.equal(result.report.match(/\bTS\d+\b/g)?.length, 1, `the other file is correct: ${result.report}`);
    await Deno.remove(`${dir}/functions/b.ts`);
  });

  await t.step("work in an app's own tests", async () => {
    const module = (path: string) => fileURLToPath(new URL(`../../../mod/${path}`, import.meta.url));
    await Deno.writeTextFile(
      `${dir}/deno.json`,
      JSON.stringify({
        nodeModulesDir: "none",
        imports: {
          "syncline/server": module("functions/api/mod.ts"),
          "syncline/test": module("testing/mod.ts"),
          "zod": "npm:zod@4.6.7",
          "croner": "npm:croner@11.0.1",
        },
      }),
    );
    await Deno.writeTextFile(
      `${dir}/a_test.ts`,
      `import { createTestServer } from "syncline/test";
      Deno.test("a", async () => {
        await using server = await createTestServer({ functionsDir: new URL("./functions", import.meta.url) });
        const result = JSON.stringify(await server.query("a:ask", {}));
        if (result !== ${JSON.stringify(JSON.stringify(RESULT))}) throw new Error(result);
      });`,
    );
    const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["test", "--no-prompt", "--no-check", "--no-lock", "--allow-read", "--allow-write", "a_test.ts"],
      cwd: dir,
      env: { NO_COLOR: "1" },
    }).output();
    assert.ok(success, new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr));
  });
});
