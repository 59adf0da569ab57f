/** Second factors on a whole server: checks in real isolates, live queries, a restart, a restored backup. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { createBackup } from "../../../mod/ops/backups/backup.ts";
import { stageRestore } from "../../../mod/ops/backups/restore/mod.ts";
import { codeOf, STEP_MS } from "../support/test_factors.ts";
import { startTestServer } from "./test_server.ts";

const email = "a@example.com";
const password = "correct horse";

const functions = {
  "pay.ts": `import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
    export const read = untypedQuery(async (ctx) => { await ctx.auth.requireFactor(); return "secret"; });
    export const send = untypedMutation(async (ctx) => {
      await ctx.auth.requireFactor({ withinMinutes: 5 });
      return "sent";
    });
    export const act = untypedAction(async (ctx) => {
      await ctx.auth.requireFactor({ withinMinutes: 5 });
      return "done";
    });
    export const readForgets = untypedQuery((ctx) => { void ctx.auth.requireFactor(); return "secret"; });
    export const sendForgets = untypedMutation((ctx) => { void ctx.auth.requireFactor(); return "sent"; });
    export const actForgets = untypedAction((ctx) => { void ctx.auth.requireFactor(); return "done"; });`,
};

Deno.test("MF6 queries, mutations and actions wait for a factor, which remains after restarts and restores", async (t) => {
  await using server = await startTestServer({ functions });
  const { body: { accessToken: bearer } } = await server.post("/api/auth/signup", { email, password });
  const call = async (kind: string, path: string, args = {}, token = bearer) =>
    (await server.post(`/api/${kind}`, { path, args }, { bearer: token })).body;

  await t.step("MF6 without a proof each kind of function fails, awaited or not", async () => {
    for (const [kind, name] of [["query", "read"], ["mutation", "send"], ["action", "act"]] as const) {
      const { errorData } = await call(kind, `pay:${name}`);
      assert.equal(errorData.code, "factor_required");
      assert.equal(errorData.data.enrolled, false);
      const forgotten = await call(kind, `pay:${name}Forgets`);
      assert.deepEqual([forgotten.status, forgotten.errorMessage], ["error", "Server Error"], name);
    }
    assert.equal((await call("query", "pay:read", {}, "")).status, "error");
  });

  let secret = "";
  let codes: string[] = [];
  await t.step("MF6 a live query is answered when the factor is proved", async () => {
    await using socket = await server.socket(bearer);
    await socket.identityVersion(1);
    socket.subscribe("pay:read");
    const failed = await socket.message(({ modifications = [] }) => modifications.length > 0);
    assert.equal(failed.modifications[0].errorData.code, "factor_required");
    const started = (await call("action", "_auth:startTotp", { password })).value;
    secret = started.secret;
    const code = codeOf(secret, Date.now(), -STEP_MS);
    const { value } = await call("action", "_auth:confirmTotp", { enrolmentId: started.enrolmentId, code });
    codes = value.recoveryCodes;
    const updated = await socket.message(({ modifications: [first] = [] }) => first?.type === "QueryUpdated");
    assert.equal(updated.modifications[0].value, "secret");
    for (const [kind, path, result] of [["mutation", "send", "sent"], ["action", "act", "done"]] as const) {
      assert.equal((await call(kind, `pay:${path}`)).value, result);
      assert.equal((await call(kind, `pay:${path}Forgets`)).value, result);
    }
  });

  const signIn = async (proof: object) => {
    const first = await server.post("/api/auth/signin", { email, password });
    assert.equal(first.body.errorData?.code, "mfa_required", JSON.stringify(first.body));
    const { challenge } = first.body.errorData.data;
    return (await server.post("/api/auth/mfa/verify", { challenge, ...proof })).status;
  };
  await t.step("MF4 factors survive a restart", async () => {
    await server.restart();
    assert.equal(await signIn({ recoveryCode: codes[0] }), 200);
    assert.equal(await signIn({ recoveryCode: codes[0] }), 400);
  });

  await t.step("MF4 a restored backup has the factors of its time", async () => {
    const archive = join(server.dataDir, "..", "one.tar.zst");
    const options = { withAux: false, withFiles: false, includeSecret: false };
    await createBackup({ dataDir: server.dataDir, out: archive, ...options });
    assert.equal(await signIn({ recoveryCode: codes[1] }), 200);
    await server.restart(async () => {
      await stageRestore({ dataDir: server.dataDir, archive, source: "one", withSecret: false });
    });
    assert.equal(await signIn({ recoveryCode: codes[1] }), 200);
    assert.equal(await signIn({ code: codeOf(secret, Date.now()) }), 200);
  });
});
