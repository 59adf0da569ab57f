import assert from "node:assert/strict";
import { z } from "zod";
import { ServiceError, UserError } from "../../mod/errors.ts";
import { anonymous } from "../../mod/functions/identity.ts";
import { internalMainAction, mainAction, MainActions } from "../../mod/functions/main_actions.ts";

const double = mainAction(z.strictObject({ n: z.number() }), ({ n }) => {
  if (n === 1) throw new UserError("one", "No ones", { n });
  if (n === 2) throw new ServiceError("rate_limited");
  if (n === 3) throw new Error("a bug");
  return Promise.resolve(n === 4 ? undefined : n * 2);
});

const sweep = internalMainAction(z.strictObject({}), () => Promise.resolve(1));

Deno.test("a main action checks its arguments and returns its errors to the caller", async () => {
  const run = async (args: Record<string, unknown>) => {
    const outcome = await double.run(args, anonymous);
    return outcome.ok ? outcome.value : [outcome.error.kind, outcome.error.message, outcome.error.data];
  };
  assert.equal(await run({ n: 5 }), "10");
  assert.equal(await run({ n: 4 }), "null");
  assert.deepEqual(await run({ n: 1 }), ["user", "No ones", { code: "one", data: { n: 1 } }]);
  assert.deepEqual(await run({ n: 2 }), ["user", "Too many requests", { code: "rate_limited", data: null }]);
  assert.deepEqual(await run({ n: 3 }), ["internal", "a bug", null]);
  assert.deepEqual((await run({ n: "x" }))?.slice(0, 1), ["args"]);
  assert.match(String((await run({ n: "x" }))?.[1]), /^args\.n: /);
  assert.deepEqual((await run({ n: 5, m: 1 }))?.slice(0, 1), ["args"]);
});

Deno.test("the table finds actions by their path, and shows internal ones only to the server", async () => {
  const table = new MainActions(new Map([["_math:double", double], ["_math:sweep", sweep]]));
  const call = { udfPath: "_math:double", args: { n: 5 }, identity: anonymous, origin: "client" } as const;
  assert.deepEqual(table.info("_math:double"), { kind: "action", visibility: "public" });
  assert.deepEqual(table.info("_math:sweep"), { kind: "action", visibility: "internal" });
  assert.equal(table.info("a:b"), undefined);
  assert.deepEqual(await table.run(call), { ok: true, value: "10", logLines: [] });
  assert.equal(table.run({ ...call, udfPath: "a:b" }), null, "the host's own functions come after the table");
  const swept = { ...call, udfPath: "_math:sweep", args: {} };
  const outcome = await table.run(swept);
  assert.equal(outcome?.ok === false && outcome.error.kind, "unknown_function");
  assert.deepEqual(await table.run({ ...swept, origin: "system" }), { ok: true, value: "1", logLines: [] });
});
