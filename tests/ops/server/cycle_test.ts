/** Backups and restores on a server: real archives, real staging, real starts. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { startTestServer, type TestServer } from "../../auth/server/test_server.ts";
import { until } from "../../support/waiting.ts";

const functions = {
  "schema.ts": `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({ notes: defineTable({ text: z.string() }) });
`,
  "notes.ts": `
import { untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const add = untypedMutation({ args: { text: z.string() }, handler: (ctx, { text }) => ctx.db.insert("notes", { text }) });
export const list = untypedQuery({ args: {}, handler: async (ctx) => (await ctx.db.query("notes").collect()).map((note) => note.text) });
`,
};

const account = { email: "root@example.com", password: "correct horse" };

/** A server with an administrator. */
async function setup() {
  const server = await startTestServer({ functions });
  const token = server.setupLink?.split("=").at(-1);
  const { body } = await server.post("/api/auth/admin/setup", { token, ...account });
  return { server, bearer: body.accessToken as string };
}

async function admin(
  { server, bearer }: { readonly server: TestServer; readonly bearer: string },
  [method, path, body]: readonly [method: string, path: string, body?: BodyInit],
) {
  const response = await fetch(`${server.url}/api/admin${path}`, {
    method,
    headers: { Authorization: `Bearer ${bearer}` },
    ...(body !== undefined && { body }),
  });
  const answer = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  return answer;
}

async function add(server: TestServer, text: string): Promise<void> {
  const { body } = await server.post("/api/mutation", { path: "notes:add", args: { text } });
  assert.equal(body.status, "success", JSON.stringify(body));
}

async function notes(server: TestServer): Promise<string[]> {
  return (await server.post("/api/query", { path: "notes:list", args: {} })).body.value;
}

async function keptFolders({ dataDir }: TestServer): Promise<string[]> {
  const names = (await Array.fromAsync(Deno.readDir(dataDir))).map(({ name }) => name);
  return names.filter((name) => name.startsWith("pre-restore-"));
}

Deno.test("[AD12] [EX18] a backup staged over HTTP is restored by the next start, which keeps replaced files", async (t) => {
  const { server, bearer } = await setup();
  await using _server = server;
  const ask = (...request: Parameters<typeof admin>[1]) => admin({ server, bearer }, request);
  await add(server, "before");
  const { missingFiles, ...made } = await ask("POST", "/backups");
  assert.deepEqual([made.parts, missingFiles], [["database"], 0]);
  await add(server, "after");

  await t.step("[EX18] a table of a backup is exported, without staging a restore", async () => {
    const exported = (path: string) => server.post(`/api/admin/backups/${path}`, {}, { bearer });
    const response = await fetch(`${server.url}/api/admin/backups/${made.name}/export/notes`, {
      method: "POST",
      headers: { Authorization: `Bearer ${bearer}` },
    });
    const lines = (await response.text()).trimEnd().split("\n");
    assert.deepEqual(lines.map((line) => JSON.parse(line).text), ["before"]);
    for (
      const [path, status, code] of [
        [`${made.name}/export/absent`, 404, "not_found"],
        [`${made.name}/export/notes?format=xml`, 400, "bad_request"],
        ["backup-20300101T000000Z-0123abcd.tar.zst/export/notes", 404, "not_found"],
      ] as const
    ) {
      const refused = await exported(path);
      assert.deepEqual([refused.status, refused.body.errorData.code], [status, code], path);
    }
    assert.equal((await ask("GET", "/restore")).restore, null);
    const incoming = join(server.dataDir, "incoming");
    await until(() => [...Deno.readDirSync(incoming)].length === 0, {
      what: "unpacked databases are removed",
    });
  });

  const { restore } = await ask("POST", `/backups/${made.name}/restore`);
  assert.deepEqual([restore.source, restore.ts, restore.createdAt], [made.name, made.ts, made.createdAt]);
  assert.deepEqual((await ask("GET", "/restore")).restore, restore);
  assert.deepEqual(await notes(server), ["before", "after"], "nothing is swapped while the server runs");

  await server.restart();
  assert.deepEqual(await notes(server), ["before"]);
  const list = await ask("GET", "/backups");
  const newest = Date.parse(made.createdAt);
  assert.deepEqual(list, { backups: [made], newest, restore: null, replication: { enabled: false } });
  const [kept = ""] = await keptFolders(server);
  assert.ok((await Deno.stat(join(server.dataDir, kept, "data.db"))).size > 0);
});

Deno.test("[AD12] a downloaded backup can be deleted and restored as an upload", async () => {
  const { server, bearer } = await setup();
  await using _server = server;
  const ask = (...request: Parameters<typeof admin>[1]) => admin({ server, bearer }, request);
  await add(server, "before");
  const { name, size } = await ask("POST", "/backups");
  const response = await fetch(`${server.url}/api/admin/backups/${name}`, {
    headers: { Authorization: `Bearer ${bearer}` },
  });
  assert.equal(response.headers.get("content-length"), String(size));
  assert.equal(response.headers.get("access-control-allow-origin"), "*");
  const archive = await response.bytes();
  assert.deepEqual(archive, await Deno.readFile(join(server.dataDir, "backups", name)));
  await ask("DELETE", `/backups/${name}`);
  await add(server, "after");

  const { restore } = await ask("POST", "/restore?name=of%20monday.tar.zst", archive);
  assert.equal(restore.source, "of monday.tar.zst");
  // A damaged one is rejected, and the staged one is kept.
  const damaged = archive.slice();
  damaged[damaged.length >> 1] = (damaged[damaged.length >> 1] ?? 0) ^ 0xff;
  const refused = await fetch(`${server.url}/api/admin/restore?name=damaged`, {
    method: "POST",
    headers: { Authorization: `Bearer ${bearer}` },
    body: damaged,
  });
  const { errorData, errorMessage } = await refused.json();
  assert.deepEqual([refused.status, errorData.code], [400, "invalid_backup"], errorMessage);
  assert.deepEqual((await ask("GET", "/restore")).restore, restore);

  await server.restart();
  assert.deepEqual(await notes(server), ["before"]);
  await add(server, "later");
  assert.deepEqual(await notes(server), ["before", "later"]);
});

Deno.test("[AD12] a canceled restore is not applied, and a start removes leftovers of a killed server", async () => {
  const { server, bearer } = await setup();
  await using _server = server;
  const ask = (...request: Parameters<typeof admin>[1]) => admin({ server, bearer }, request);
  const { name } = await ask("POST", "/backups");
  await add(server, "after");
  await ask("POST", `/backups/${name}/restore`);
  assert.deepEqual(await ask("DELETE", "/restore"), { cancelled: true });
  // As after a server killed while receiving an archive and making a backup.
  const [incoming, backups] = [join(server.dataDir, "incoming"), join(server.dataDir, "backups")];
  await server.restart(async () => {
    await Deno.writeTextFile(join(incoming, "restore-0"), "half of it");
    await Deno.writeTextFile(join(backups, `.${name}.0123456789ab.syncline-partial`), "half of it");
  });
  assert.deepEqual(await notes(server), ["after"]);
  assert.deepEqual(await keptFolders(server), []);
  assert.deepEqual(await Array.fromAsync(Deno.readDir(incoming)), []);
  assert.deepEqual((await Array.fromAsync(Deno.readDir(backups))).map((entry) => entry.name), [name]);
});

Deno.test("[AD13] a table is exported and imported, by administrators only", async (t) => {
  const { server, bearer } = await setup();
  await using _server = server;
  await add(server, "one");
  await add(server, "two");
  const url = `${server.url}/api/admin`;
  const headers = { Authorization: `Bearer ${bearer}` };
  for (const format of ["jsonl", "csv"]) {
    const exported = await fetch(`${url}/export/notes?format=${format}`, { headers });
    const text = await exported.text();
    assert.deepEqual([exported.status, exported.headers.get("cache-control")], [200, "no-store"], text);
    await add(server, "not in the export");
    const path = `/import/notes?mode=replace&format=${format}`;
    const answer = await admin({ server, bearer }, ["POST", path, text]);
    assert.deepEqual([answer.table, answer.imported], ["notes", 2]);
    assert.deepEqual(await notes(server), ["one", "two"], format);
  }
  for (
    const [method, path] of [["GET", "/export/notes"], ["POST", "/import/notes"], [
      "GET",
      "/../%61dmin/backups",
    ]]
  ) {
    const response = await fetch(`${url}${path}`, { ...(method && { method }) });
    assert.deepEqual([response.status, (await response.json()).errorData.code], [401, "invalid_token"]);
  }

  await t.step("[AD12] concurrent backups run one after another while calls are answered", async () => {
    const asked = [1, 2, 3].map(() => admin({ server, bearer }, ["POST", "/backups"]));
    for (let i = 0; i < 20; i++) await add(server, `note ${i}`);
    const names = (await Promise.all(asked)).map(({ name }) => name);
    const { backups } = await admin({ server, bearer }, ["GET", "/backups"]);
    assert.deepEqual(backups.map(({ name }: { name: string }) => name).toSorted(), names.toSorted());
  });
});
