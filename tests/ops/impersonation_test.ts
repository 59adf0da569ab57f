import assert from "node:assert/strict";
import { opsLimits } from "../../mod/ops/limits.ts";
import { type AdminApp, errorOf, startAdminApp } from "./support/admin_app.ts";

const impersonate = (app: AdminApp, body: unknown) =>
  app.request("/impersonate", { method: "POST", body: JSON.stringify(body) });

Deno.test("[AD2] impersonation returns tokens of a user session with a fixed end", async () => {
  await using app = await startAdminApp();
  const { accounts } = app;
  const { userId = "" } = await accounts.signUp("user@example.com");
  const response = await impersonate(app, { userId, ttlSeconds: 600 });
  assert.deepEqual([response.status, response.headers.get("cache-control")], [200, "no-store"]);
  const tokens = await response.json();
  assert.deepEqual(Object.keys(tokens).toSorted(), ["accessToken", "expiresIn", "refreshToken", "userId"]);
  assert.deepEqual([tokens.userId, tokens.expiresIn], [userId, 600]);
  const { adminId } = await accounts.identityOf(app.adminToken);
  const session = accounts.port.rows("_sessions").find((row) => row.impersonatedBy !== undefined);
  assert.deepEqual([session?.user, session?.impersonatedBy], [userId, adminId]);
  assert.equal(session?.expiresAt, accounts.clock.now + 600_000);
  assert.equal((await accounts.identityOf(tokens.accessToken)).userId, userId);
  assert.deepEqual(app.logged, [{
    level: "info",
    message: "Impersonation started",
    fields: { adminId, userId, ttlSeconds: 600 },
  }]);
});

Deno.test("[AD2] the default lifetime is a quarter of an hour, with an upper bound", async () => {
  await using app = await startAdminApp();
  const { userId } = await app.accounts.signUp("user@example.com");
  assert.equal((await impersonate(app, { userId })).status, 200);
  const session = app.accounts.port.rows("_sessions").find((row) => row.impersonatedBy !== undefined);
  assert.equal(
    session?.expiresAt,
    app.accounts.clock.now + opsLimits.impersonationSecondsDefault * 1000,
  );
  for (const ttlSeconds of [0, -1, 1.5, "60", opsLimits.impersonationSecondsMax + 1]) {
    const { status, code } = await errorOf(await impersonate(app, { userId, ttlSeconds }));
    assert.deepEqual([status, code], [400, "bad_request"], String(ttlSeconds));
  }
});

Deno.test("[AD2] an unknown user cannot be impersonated", async () => {
  await using app = await startAdminApp();
  const { adminId } = await app.accounts.identityOf(app.adminToken);
  const { userId = "" } = await app.accounts.signUp("user@example.com");
  await app.accounts.port.deleteRow(userId);
  for (const unknown of ["", "nobody", adminId, userId, "../x"]) {
    const { status, code } = await errorOf(await impersonate(app, { userId: unknown }));
    assert.deepEqual([status, code], [404, "not_found"], String(unknown));
  }
  assert.deepEqual(app.logged, []);
});

Deno.test("[AD2] an invalid request is rejected", async () => {
  await using app = await startAdminApp();
  for (const body of ["", "{", "[]", "{}", '{"userId":1}']) {
    const { status, code } = await errorOf(await app.request("/impersonate", { method: "POST", body }));
    assert.deepEqual([status, code], [400, "bad_request"], body);
  }
});
