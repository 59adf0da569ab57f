/** An import on a running server with a subscription to the table. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { SynclineClient } from "../../../mod/client/mod.ts";
import { opsLimits } from "../../../mod/ops/limits.ts";
import { startTestServer } from "../../auth/server/test_server.ts";
import { until } from "../../support/waiting.ts";

const functions = {
  "schema.ts": `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({ notes: defineTable({ text: z.string() }) });
`,
  "notes.ts": `
import { untypedQuery } from "syncline/server";
export const count = untypedQuery({ args: {}, handler: async (ctx) => (await ctx.db.query("notes").collect()).length });
`,
};

/** Whether the body of an import is in the data folder. */
async function isReceiving(dataDir: string): Promise<boolean> {
  for await (const { name, isDirectory } of Deno.readDir(dataDir)) {
    if (!isDirectory) continue;
    for await (const file of Deno.readDir(join(dataDir, name))) {
      if (file.name.startsWith("import-")) return true;
    }
  }
  return false;
}

Deno.test("[IM17] a subscription sees whole batches as they commit, and soon reaches the response's ts", async (t) => {
  await using server = await startTestServer({ functions });
  const token = server.setupLink?.split("=").at(-1);
  const { body } = await server.post("/api/auth/admin/setup", {
    token,
    email: "root@example.com",
    password: "correct horse",
  });
  const client = new SynclineClient(server.url);
  try {
    // Whole batches.
    const rows = 40 * opsLimits.importBatchRowsMax;
    const counts: number[] = [];
    const { promise: empty, resolve: seenEmpty } = Promise.withResolvers<void>();
    const failure = Promise.withResolvers<never>();
    client.subscribe("notes:count", {}, (value) => {
      counts.push(value as number);
      if (value === 0) seenEmpty();
    }, failure.reject);
    await empty;
    let ts = 0;
    const isImporting = () => counts.some((count) => count % rows !== 0);
    // On a busy machine a query may run once for a whole import. Then another one.
    for (let imports = 1; imports <= 5 && !isImporting(); imports++) {
      const mode = imports === 1 ? "replace" : "insert";
      const response = await fetch(`${server.url}/api/admin/import/notes?mode=${mode}`, {
        method: "POST",
        headers: { Authorization: `Bearer ${body.accessToken}` },
        body: Array.from({ length: rows }, (_, n) => `{"text":"${n}"}\n`).join(""),
      });
      const answer = await response.json();
      assert.deepEqual([response.status, answer.imported, answer.table], [200, rows, "notes"]);
      ({ ts } = answer);
      await Promise.race([until(() => counts.at(-1) === imports * rows), failure.promise]);
    }
    assert.ok(isImporting(), `the rows came all at once: ${counts}`);
    for (const [at, count] of counts.entries()) {
      assert.ok(count % opsLimits.importBatchRowsMax === 0, `half a batch: ${count}`);
      assert.ok(at === 0 || count > (counts[at - 1] ?? 0), `not in order: ${counts}`);
    }
    const health = await (await fetch(`${server.url}/api/health`)).json();
    // The end and the audit entry are later commits.
    assert.ok(health.ts >= ts && health.ts <= ts + 2, `${health.ts} after ${ts}`);
  } finally {
    client.close();
  }

  await t.step("[IM17] only administrators import, and an aborted request imports nothing", async () => {
    const url = `${server.url}/api/admin/import/notes`;
    const row = `{"text":"a"}\n`;
    const count = async () => (await server.post("/api/query", { path: "notes:count", args: {} })).body.value;
    const before = await count();
    const stranger = await fetch(url, { method: "POST", body: row });
    assert.equal(stranger.status, 401);
    await stranger.body?.cancel();
    const headers = { Authorization: `Bearer ${body.accessToken}` };
    const gone = new AbortController();
    const halves = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(row)),
    });
    const broken = fetch(url, { method: "POST", headers, body: halves, signal: gone.signal });
    while (!await isReceiving(server.dataDir));
    gone.abort();
    await assert.rejects(broken);
    // It continues once the server has noticed.
    for (;;) {
      const next = await fetch(url, { method: "POST", headers, body: row });
      await next.body?.cancel();
      if (next.status === 200) break;
      assert.equal(next.status, 503);
    }
    assert.equal(await count(), before + 1);
  });
});
