import assert from "node:assert/strict";
import { Hono } from "hono";
import { join } from "node:path";
import type { AdminEnv } from "../../mod/ops/admin/admin_guard.ts";
import { type AdminApp, startAdminApp } from "./support/admin_app.ts";
import { writeTestArchive } from "./support/archives.ts";

/** Some paths, and unknown ones; `admin/callers_test.ts` covers all. */
const requests = [
  ["GET", "/backups/a.tar.zst"],
  ["DELETE", "/backups/a.tar.zst"],
  ["POST", "/import/notes"],
  ["GET", "/no/such/path"],
  ["DELETE", ""],
] as const;

const base64 = (text: string) =>
  new TextEncoder().encode(text).toBase64({ alphabet: "base64url", omitPadding: true });

/** Invalid tokens, by reason. */
async function strangers({ accounts, adminToken }: AdminApp): Promise<Record<string, string | null>> {
  const user = await accounts.signUp("user@example.com");
  const signedOut = await accounts.signInAdmin("left@example.com");
  await accounts.post("/signout", {}, { bearer: signedOut.accessToken });
  const admin = await accounts.identityOf(adminToken);
  const acting = await accounts.service.sessions.impersonate({
    userId: user.userId ?? "",
    adminId: admin.adminId ?? "",
    adminSession: admin.sessionId ?? "",
    lifetimeMs: 60_000,
    userAgent: null,
  });
  const [, claims, signature] = adminToken.split(".");
  return {
    "no token": null,
    "a user's token": user.accessToken,
    "a token of an administrator who acts as a user": acting?.accessToken ?? "",
    "a token whose session was signed out": signedOut.accessToken,
    "an external token": `${base64('{"alg":"RS256","typ":"JWT"}')}.${claims}.${signature}`,
    "a forged token": `${adminToken.slice(0, -4)}AAAA`,
    "no token at all": "x",
  };
}

Deno.test("[AD1] every path below /api/admin responds to unauthenticated callers with the same 401", async () => {
  const reached = () => assert.fail("a stranger got through");
  const tables = new Hono<AdminEnv>().get("/export/:table", reached).post("/import/:table", reached);
  const restores = { stage: reached, staged: reached, cancel: reached };
  await using app = await startAdminApp({ restart: reached, make: reached, restores, tables: [tables] });
  await writeTestArchive(join(app.backupsDir, "a.tar.zst"));
  const seen = new Set<string>();
  for (const [who, bearer] of Object.entries(await strangers(app))) {
    for (const [method, path] of requests) {
      const response = await app.request(path, { method, bearer });
      const { status, headers } = response;
      assert.equal(status, 401, `${who}: ${method} ${path}`);
      assert.equal(headers.get("cache-control"), "no-store");
      seen.add(await response.text());
    }
  }
  assert.deepEqual([...seen].map((text) => JSON.parse(text)), [{
    status: "error",
    errorMessage: "The access token is not valid",
    errorData: { code: "invalid_token", data: null },
  }]);
  assert.deepEqual(app.logged, []);
  assert.ok((await Deno.stat(join(app.backupsDir, "a.tar.zst"))).isFile);
});

Deno.test("[AD1] an administrator's token is valid until it expires", async () => {
  await using app = await startAdminApp();
  const first = await app.request("/replication");
  assert.deepEqual([first.status, first.headers.get("cache-control")], [200, "no-store"]);
  assert.deepEqual(await first.json(), { enabled: false });
  app.accounts.clock.now += 900_000;
  const late = await app.request("/replication");
  assert.equal(late.status, 401);
  await late.body?.cancel();
});

Deno.test("[AD1] a token in the URL is ignored", async () => {
  await using app = await startAdminApp();
  for (const name of ["token", "access_token", "authorization"]) {
    const response = await app.request(`/replication?${name}=${app.adminToken}`, { bearer: null });
    assert.equal(response.status, 401);
    await response.body?.cancel();
  }
});

Deno.test("[AD1] an administrator gets 404 for unknown paths", async () => {
  await using app = await startAdminApp();
  const response = await app.request("/no/such/path");
  assert.deepEqual([response.status, response.headers.get("cache-control")], [404, "no-store"]);
  assert.equal((await response.json()).errorData.code, "not_found");
});
