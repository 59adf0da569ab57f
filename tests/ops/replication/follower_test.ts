/** A server that follows the replica of another: reads, refused writes, restarts and promotion. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { bearerOf, startTestServer, type TestServer } from "../../auth/server/test_server.ts";
import { until } from "../../support/waiting.ts";
import { replicationTo, shipped } from "./replicating.ts";

const schema = (indexes: string) => `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({ notes: defineTable({ text: z.string() })${indexes} });
`;

const functions = {
  "schema.ts": schema(""),
  "notes.ts": `
import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const add = untypedMutation({ args: { text: z.string() }, handler: (ctx, { text }) => ctx.db.insert("notes", { text }) });
export const list = untypedQuery({ args: {}, handler: async (ctx) => (await ctx.db.query("notes").collect()).map((note) => note.text) });
export const who = untypedQuery({ args: {}, handler: (ctx) => ctx.auth.userId() });
export const addLater = untypedAction({ args: {}, handler: (ctx) => ctx.runMutation("notes:add", { text: "by an action" }) });
`,
};

const shipping = (path: string) => ({ replication: replicationTo(path) });
const following = (path: string, promote = false) =>
  ({ follow: { from: { kind: "folder", path }, everyMs: 20, promote } }) as const;

async function add(server: TestServer, text: string): Promise<number> {
  const { body } = await server.post("/api/mutation", { path: "notes:add", args: { text } });
  assert.equal(body.status, "success", JSON.stringify(body));
  return body.ts as number;
}

async function notes(server: TestServer): Promise<string[]> {
  const { status, body } = await server.post("/api/query", { path: "notes:list", args: {} });
  return status === 503 ? [] : body.value as string[];
}

const shows = (server: TestServer, texts: readonly string[]) =>
  until(async () => JSON.stringify(await notes(server)) === JSON.stringify(texts), {
    what: `the follower shows ${texts}`,
  });

Deno.test("[RP17] [RP18] [RP19] [RP20] [RP21] [RP22] a follower applies commits, refuses writes, starts from a snapshot, and is promoted", async (t) => {
  await using folder = await tempFolder();
  const replica = join(folder.path, "replica");
  await using leader = await startTestServer({ functions, config: shipping(replica) });
  const bearer = await bearerOf(leader);
  const user = await leader.post("/api/auth/signup", { email: "ada@example.com", password: "correct horse" });
  await add(leader, "one");
  await shipped(leader, bearer);
  // Tokens are those of the server that is followed.
  const dataDir = join(folder.path, "follower");
  await Deno.mkdir(dataDir);
  await Deno.copyFile(join(leader.dataDir, "auth_secret.key"), join(dataDir, "auth_secret.key"));
  await using follower = await startTestServer({
    functions,
    config: { ...following(replica), dataDir, metrics: { token: null } },
  });
  assert.equal(follower.setupLink, null);
  const asked = async (path: string) =>
    await (await fetch(`${follower.url}${path}`, { headers: { Authorization: `Bearer ${bearer}` } })).json();

  await t.step("queries and subscriptions return the commits with their ts, in order", async () => {
    assert.deepEqual(await notes(follower), ["one"]);
    await using socket = await follower.socket();
    socket.send({
      type: "ModifyQuerySet",
      baseVersion: 0,
      newVersion: 1,
      modifications: [{ type: "Add", queryId: 1, udfPath: "notes:list", args: {} }],
    });
    const seen = () =>
      socket.messages.filter(({ type }) => type === "Transition").map(({ endVersion }) =>
        endVersion.ts as number
      );
    const texts = ["one"];
    for (const text of ["two", "three", "four"]) {
      const ts = await add(leader, text);
      texts.push(text);
      await socket.message(({ type, endVersion }) => type === "Transition" && endVersion.ts >= ts);
    }
    assert.deepEqual(await notes(follower), texts);
    assert.deepEqual(seen(), seen().toSorted((a, b) => a - b));
    assert.ok(seen().includes((await asked("/api/health")).ts));
  });

  await t.step("sessions of the other server are accepted, and revoking them ends them here", async () => {
    const token = user.body.accessToken as string;
    await using socket = await follower.socket(token);
    await socket.identityVersion(1);
    const { body } = await follower.post("/api/query", { path: "notes:who", args: {} }, { bearer: token });
    assert.equal(typeof body.value, "string");
    await leader.post("/api/auth/signout", {}, { bearer: user.body.accessToken });
    await socket.message(({ type }) => type === "AuthError");
  });

  await t.step("all writes are refused with one code", async () => {
    const before = await notes(follower);
    const add = await follower.post("/api/mutation", { path: "notes:add", args: { text: "no" } });
    assert.equal(add.status, 400);
    assert.equal(add.body.errorData.code, "read_only");
    const later = await follower.post("/api/action", { path: "notes:addLater", args: {} });
    assert.notEqual(later.status, 200);
    assert.match(JSON.stringify(later.body), /read_only|follows another/);
    for (
      const [path, body] of [
        ["/api/auth/signup", { email: "new@example.com", password: "correct horse" }],
        ["/api/auth/signin", { email: "root@example.com", password: "correct horse" }],
        ["/api/storage/resumable", {}],
        ["/api/admin/replication/snapshot", {}],
        ["/api/admin/restore/point-in-time", {}],
        ["/api/mcp", {}],
      ] as const
    ) {
      const refused = await follower.post(path, body, { bearer });
      assert.equal(refused.status, 409, path);
      assert.equal(refused.body.errorData.code, "read_only", path);
    }
    // Reads may have a filter in the body.
    const shown = await fetch(`${follower.url}/api/admin/export/notes`, {
      method: "POST",
      headers: { Authorization: `Bearer ${bearer}` },
      body: "{}",
    });
    assert.deepEqual([shown.status, (await shown.text()).trim().split("\n").length], [200, before.length]);
    await using socket = await follower.socket();
    socket.send({ type: "Mutation", requestId: 0, udfPath: "notes:add", args: { text: "no" } });
    const answer = await socket.message(({ type }) => type === "MutationResponse");
    assert.match(JSON.stringify(answer), /read_only/);
    assert.deepEqual(await notes(follower), before);
  });

  await t.step("it reports its lag", async () => {
    await until(async () => (await asked("/api/admin/replication")).follower.lagCommits === 0, {
      what: "all is shown",
    });
    const { enabled, follower: status } = await asked("/api/admin/replication");
    assert.equal(enabled, false);
    assert.equal(status.from, replica);
    assert.equal(status.ts, (await asked("/api/health")).ts);
    assert.equal(status.newestTs, status.ts);
    assert.equal(typeof status.lagMs, "number");
    assert.equal((await asked("/api/admin/backups")).replication.follower.from, replica);
    const ready = await asked("/api/health/ready");
    assert.equal(ready.status, "ready");
    assert.equal(ready.follower.ts, status.ts);
    const metrics = await (await fetch(`${follower.url}/metrics`)).text();
    assert.match(metrics, /^syncline_follower_lag_commits 0$/m);
    assert.match(metrics, /^syncline_follower_lag_seconds \d/m);
  });

  await t.step("a changed schema of the other is followed, before its code is here", async () => {
    const index = `.index("by_text", ["text"])`;
    await Deno.writeTextFile(
      join(leader.dataDir, "../functions/schema.ts"),
      functions["schema.ts"].replace("({ text: z.string() })", `({ text: z.string() })${index}`),
    );
    await leader.restart();
    await add(leader, "five");
    await shows(follower, ["one", "two", "three", "four", "five"]);
  });

  await t.step("at a gap in the log it restarts from a snapshot, and sockets reconnect", async () => {
    await using socket = await follower.socket();
    await leader.restart(async () => {
      // Commits without a journal are in no segment: another generation starts.
      await using alone = await startTestServer({
        functions,
        config: { dataDir: leader.dataDir, functionsDir: join(leader.dataDir, "../functions") },
      });
      await add(alone, "six");
    });
    await add(leader, "seven");
    await socket.closed;
    assert.equal(socket.closeCode, 1012);
    await shows(follower, ["one", "two", "three", "four", "five", "six", "seven"]);
    await add(leader, "eight");
    await shows(follower, ["one", "two", "three", "four", "five", "six", "seven", "eight"]);
  });

  await t.step(
    "a start without the replica shows the local state, and continues when the replica is back",
    async () => {
      await Deno.rename(replica, `${replica}-away`);
      await follower.restart();
      assert.equal((await notes(follower)).length, 8);
      const { follower: status } = await asked("/api/admin/replication");
      assert.equal(status.lagMs, null);
      await Deno.rename(`${replica}-away`, replica);
      await add(leader, "nine");
      await until(async () => (await notes(follower)).length === 9, { what: "it goes on" });
    },
  );

  await t.step(
    "a data folder is never mistaken for another kind, and has its own commits after promotion",
    async () => {
      const elsewhere = join(folder.path, "elsewhere");
      await follower.restart(async () => {
        await assert.rejects(
          startTestServer({ functions, config: { dataDir } }),
          /its commits come from .* --follow/,
        );
        const own = join(folder.path, "own");
        await Deno.mkdir(own);
        await Deno.copyFile(join(leader.dataDir, "data.db"), join(own, "data.db"));
        await assert.rejects(
          startTestServer({ functions, config: { ...following(replica), dataDir: own } }),
          /belongs to this server/,
        );
        const shown = await notes(leader);
        for (const time of ["first", "second"]) {
          await using promoted = await startTestServer({
            functions,
            config: { ...following(replica, true), ...shipping(elsewhere), dataDir },
          });
          assert.deepEqual(await notes(promoted), shown, time);
          await add(promoted, time);
          shown.push(time);
          const ping = { jsonrpc: "2.0", id: 1, method: "ping" };
          const headers = { Accept: "application/json, text/event-stream" };
          const answered = await promoted.post("/api/mcp", ping, { bearer, headers });
          assert.deepEqual([answered.status, answered.body.result], [200, {}]);
          const { generation } = await shipped(promoted, bearer);
          assert.notEqual(generation, (await shipped(leader, bearer)).generation);
          const [facts] = await Array.fromAsync(Deno.readDir(join(elsewhere, "generations")));
          assert.equal(facts?.name, generation, "one generation for both lives");
          const reported = await Deno.readTextFile(
            join(elsewhere, "generations", String(generation), "generation.json"),
          );
          assert.equal(JSON.parse(reported).reason, "promoted");
        }
        await Deno.remove(dataDir, { recursive: true });
      });
      assert.equal((await notes(follower)).length, 9, "an empty folder starts from a snapshot");
    },
  );
});

async function tempFolder() {
  const path = await Deno.makeTempDir({ prefix: "syncline-follower-" });
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}
