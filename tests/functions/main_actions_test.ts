import assert from "node:assert/strict";
import { z } from "zod";
import { ServiceError, UserError } from "../../mod/errors.ts";
import type { FunctionCall, FunctionHost } from "../../mod/functions/host_port.ts";
import { anonymous } from "../../mod/functions/identity.ts";
import { HostWithMainActions, mainAction } from "../../mod/functions/main_actions.ts";

const double = mainAction(z.strictObject({ n: z.number() }), ({ n }) => {
  if (n === 1) throw new UserError("one", "No ones", { n });
  if (n === 2) throw new ServiceError("rate_limited");
  if (n === 3) throw new Error("a bug");
  return Promise.resolve(n === 4 ? undefined : n * 2);
});

Deno.test("a main action checks its arguments and tells the caller what it should", async () => {
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

Deno.test("main actions stand in front of the host's functions, everything else goes on to it", async () => {
  const reached: string[] = [];
  const host = {
    ts: 7,
    readerFree: true,
    info: (udfPath: string) => (reached.push(`info ${udfPath}`), undefined),
    act: (
      call: FunctionCall,
    ) => (reached.push(`act ${call.udfPath}`), Promise.resolve({ ok: true, value: "1", logLines: [] })),
    // What is not asked here is left out.
  } as unknown as FunctionHost;
  const ended: unknown[] = [];
  const both = new HostWithMainActions(
    host,
    new Map([["_math:double", double]]),
    ({ udfPath }, { outcome }) => ended.push([udfPath, outcome.ok || outcome.error.message]),
  );
  const call = { udfPath: "_math:double", args: { n: 5 }, identity: anonymous, origin: "client" } as const;
  assert.deepEqual(both.info("_math:double"), { kind: "action", visibility: "public" });
  assert.deepEqual(await both.act(call), { ok: true, value: "10", logLines: [] });
  both.info("a:b");
  await both.act({ ...call, udfPath: "a:b" });
  await both.act({ ...call, args: { n: 3 } });
  assert.deepEqual(reached, ["info a:b", "act a:b"]);
  assert.deepEqual(ended, [["_math:double", true], ["_math:double", "a bug"]], "those of the host tell it");
  assert.deepEqual([both.ts, both.readerFree], [7, true]);
});
