import assert from "node:assert/strict";
import { errorOf, startAdminApp } from "./support/admin_app.ts";

Deno.test("[AD7] a restart is available only under a supervisor", async () => {
  await using without = await startAdminApp();
  assert.deepEqual(await (await without.request("/restore/restart")).json(), { offered: false });
  const refused = await errorOf(await without.request("/restore/restart", { method: "POST" }));
  assert.deepEqual([refused.status, refused.code], [404, "not_found"]);
  let restarts = 0;
  await using app = await startAdminApp({ restart: () => void restarts++ });
  assert.deepEqual(await (await app.request("/restore/restart")).json(), { offered: true });
  const response = await app.request("/restore/restart", { method: "POST" });
  assert.deepEqual([response.status, await response.json(), restarts], [200, {}, 1]);
  assert.equal(app.logged[0]?.message, "Restart requested by an administrator");
});
