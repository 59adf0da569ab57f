/** The remains of a call have no effect on later calls. */
import assert from "node:assert/strict";
import { RealHost } from "../host/support/real_host.ts";
import { call } from "../host/support/writer_world.ts";
import { until } from "../../support/waiting.ts";

const APP = {
  "a.js": `import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
    export const loopingStacks = untypedMutation(() => { Error.prepareStackTrace = () => { for (;;); }; Error.stackTraceLimit = 0; });
    export const fails = untypedMutation(() => { throw new Error("bad luck"); });
    const attempts = [
      () => { globalThis.fetch = () => "patched"; }, () => { Object.defineProperty(globalThis, "fetch", { value: () => "patched" }); },
      () => { delete globalThis.fetch; }, () => { globalThis.Response = class {}; }, () => { Response.prototype.json = () => "patched"; },
      () => { Object.defineProperty(Request.prototype, "url", { get: () => "patched" }); }, () => { Headers.prototype.get = () => "patched"; },
      () => { Response.json = () => "patched"; }, () => { globalThis.setTimeout = () => "patched"; }, () => { URL.prototype.toString = () => "patched"; },
      () => { globalThis.mine = (globalThis.mine ?? 0) + 1; },
    ];
    export const patch = untypedAction(() => { for (const attempt of attempts) { try { attempt(); } catch {} } return globalThis.mine; });
    export const sound = untypedAction(async () => [typeof fetch("data:,a").then, await Response.json([1]).json(), new Request("http://a/b").url,
      new Headers({ a: "b" }).get("a"), typeof setTimeout(() => {}, 0), String(new URL("http://a/b"))]);
    const hash = (iterations) => crypto.subtle.importKey("raw", new Uint8Array(8), "PBKDF2", false, ["deriveBits"]).then((key) =>
      crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-512", salt: new Uint8Array(8), iterations }, key, 256));
    const leave = () => { for (let i = 0; i < 64; i++) hash(20_000_000).catch(() => {}); return "answered"; };
    export const leaveMutation = untypedMutation(leave);
    export const leaveQuery = untypedQuery(leave);
    export const leaveAction = untypedAction(leave);
    export const timers = untypedAction(() => { const again = () => setTimeout(() => { for (const end = Date.now() + 50; Date.now() < end;); again(); }, 0); again(); return "answered"; });
    export const waited = untypedAction(async () => { await hash(200_000); return "waited"; });
    export const one = untypedQuery(() => 1);`,
};

Deno.test("[FA15] side effects of a call are undone, or end its isolate without affecting other calls", async (t) => {
  await using it = await RealHost.start(APP);

  await t.step("how stack traces are created", async () => {
    await it.mutate("a:loopingStacks");
    assert.equal(await it.mutate("a:fails"), "internal: bad luck");
    const { outcome } = await it.host.mutate(call("a:fails"));
    assert.ok(!outcome.ok);
    assert.match(outcome.error.stack ?? "", /a\.js:\d+/);
    assert.deepEqual(it.logged.filter((text) => text.includes("ended")), []);
  });

  await t.step(
    "globals of the runtime and their classes are restored; those of the app are kept",
    async () => {
      assert.equal(await it.act("a:patch"), 1);
      assert.deepEqual(await it.act("a:sound"), ["function", [1], "http://a/b", "b", "object", "http://a/b"]);
      assert.equal(await it.act("a:patch"), 2);
    },
  );

  for (
    const [role, run] of [
      ["writer", () => it.mutate("a:leaveMutation")],
      ["reader", () => it.query("a:leaveQuery")],
      ["runner", () => it.act("a:leaveAction")],
      ["runner", () => it.act("a:timers")],
    ] as const
  ) {
    await t.step(`work that continues after the answer of a ${role}`, async () => {
      it.logged.length = 0;
      assert.equal(await run(), "answered");
      await until(() => it.logged.some((text) => text.includes("left work behind")), {
        what: () => it.logged.join("\n"),
      });
      assert.equal(await it.query("a:one"), 1);
      assert.equal(await it.mutate("a:fails"), "internal: bad luck");
      assert.equal(await it.act("a:waited"), "waited");
    });
  }
});
