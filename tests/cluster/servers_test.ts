/** Two servers on one PostgreSQL in this process: their results, the fate of commits, and the server that makes them. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { createBackup } from "../../mod/ops/backups/mod.ts";
import { cancelRestore, stageRestore } from "../../mod/ops/backups/restore/mod.ts";
import { StartError } from "../../mod/config/start_error.ts";
import { restoreConnection } from "../../mod/cluster/postgres/cluster_source.ts";
import { addressText } from "../../mod/cluster/postgres/postgres_address.ts";
import { clusterLimits } from "../../mod/cluster/postgres/limits.ts";
import { options as allOptions, type OptionValues } from "../../mod/config/options.ts";
import { choose, listText, stageChosen, withReplica } from "../../mod/cli/replica_restore.ts";
import { bearerOf, startTestServer, type TestServer, type TestSocket } from "../auth/server/test_server.ts";
import { pause, until } from "../support/waiting.ts";
import { needs, postgres } from "../support/services.ts";
import { TestPostgres } from "./support/postgres.ts";
import {
  add,
  changeLease,
  ClusterRig,
  functions,
  LEASE_MS,
  LONG_LEASE_MS,
  notes,
} from "./support/servers.ts";

async function get(server: TestServer, path: string, bearer?: string) {
  const headers = bearer === undefined ? {} : { Authorization: `Bearer ${bearer}` };
  const response = await fetch(`${server.url}${path}`, { headers });
  return { status: response.status, body: await response.json() };
}

const leads = async (server: TestServer) =>
  (await get(server, "/api/health/ready")).body.cluster?.role === "leader";

/** A socket whose first request is for the notes. */
const WATCHES_NOTES = {
  type: "ModifyQuerySet",
  baseVersion: 0,
  newVersion: 1,
  modifications: [{ type: "Add", queryId: 0, udfPath: "notes:list", args: {} }],
};

Deno.test(needs(postgres, "servers on one PostgreSQL"), async (t) => {
  await using postgres = await TestPostgres.start();
  await using rig = await ClusterRig.make(await postgres.database());
  await using open = new AsyncDisposableStack();
  // Each step depends on the previous one.
  const steps = {
    step: async (name: string, run: () => Promise<void>) => assert.ok(await t.step(name, run), name),
  };
  let bearer = "";
  let [a, b] = [undefined, undefined] as unknown as [TestServer, TestServer];

  await steps.step("[PG10] a folder with data starts a cluster and creates its first snapshot", async () => {
    {
      await using alone = await rig.start("a", { cluster: null });
      bearer = await bearerOf(alone);
      await add(alone, "before");
      assert.deepEqual((await get(alone, "/api/admin/cluster", bearer)).body, { enabled: false });
    }
    a = open.use(await rig.first("a"));
    assert.deepEqual(await notes(a), ["before"]);
    await add(a, "first");
  });

  await steps.step(
    "[PG5] another server starts with it, shows the same commits, and accepts the same tokens",
    async () => {
      b = open.use(await rig.start("b"));
      assert.deepEqual(await notes(b), ["before", "first"]);
      await using socket = await b.socket();
      socket.send(WATCHES_NOTES);
      await socket.message(({ type }) => type === "Transition");
      const ts = await add(a, "pushed");
      const { endVersion } = await socket.message(({ type, modifications }) =>
        type === "Transition" && JSON.stringify(modifications).includes("pushed")
      );
      assert.equal(endVersion.ts, ts);
      assert.equal((await get(b, "/api/admin/cluster", bearer)).status, 200);
    },
  );

  await steps.step(
    "[PG13] a socket shows no older state than its client may have seen at another server",
    async () => {
      for (let round = 0; round < 10; round++) {
        const ts = await add(a, `round ${round}`);
        const from = performance.now();
        await using socket = await b.socket();
        socket.send(WATCHES_NOTES);
        const { endVersion } = await socket.message(({ type }) => type === "Transition");
        // After this time, for example on a paused machine, a socket starts with an older state.
        if (performance.now() - from >= clusterLimits.socketWaitMs) continue;
        assert.ok(endVersion.ts >= ts, `${endVersion.ts} is older than ${ts}`);
      }
    },
  );

  await steps.step(
    "[PG12] administration, readiness and metrics report the role and position of each server",
    async () => {
      await until(async () => (await get(a, "/api/admin/cluster", bearer)).body.servers?.length === 2);
      const { body } = await get(a, "/api/admin/cluster", bearer);
      assert.deepEqual(Object.keys(body), [
        "enabled",
        "id",
        "place",
        "role",
        "epoch",
        "takeovers",
        "database",
        "servers",
      ]);
      assert.equal(body.role, "leader");
      assert.deepEqual(body.database, { status: "ok", forMs: 0 });
      const roles = body.servers.map((
        { role, epoch }: { role: string; epoch: number | null },
      ) => [role, epoch]);
      assert.deepEqual(roles.sort(), [["follower", null], ["leader", body.epoch]]);
      await until(async () => {
        const { servers } = (await get(a, "/api/admin/cluster", bearer)).body;
        return servers.every(({ role, lagMs }: { role: string; lagMs: number | null }) =>
          role === "leader" ? lagMs === 0 : lagMs !== null && lagMs >= 0
        );
      });
      assert.ok(!JSON.stringify(body).includes("postgres://"));
      assert.equal((await get(b, "/api/admin/cluster")).status, 401);
      assert.deepEqual((await get(b, "/api/health/ready")).body.cluster, {
        role: "follower",
        database: "ok",
        link: "ok",
      });
    },
  );

  await steps.step(
    "[PG6] while the database is unreachable, reads continue, and commits wait and then fail with a retryable error",
    async () => {
      const before = (await add(a, "kept")) as number;
      const sockets = await Promise.all(
        [a, b].map(async (server) => ({ server, socket: await server.socket() })),
      );
      const watch = (socket: TestSocket, queryId: number, udfPath: string) =>
        socket.send({
          type: "ModifyQuerySet",
          baseVersion: queryId,
          newVersion: queryId + 1,
          modifications: [{ type: "Add", queryId, udfPath, args: {} }],
        });
      const watched = (socket: TestSocket, querySet: number) =>
        socket.message(({ type, endVersion }) => type === "Transition" && endVersion.querySet === querySet);
      for (const { server, socket } of sockets) {
        await until(async () => (await notes(server)).includes("kept"));
        watch(socket, 0, "notes:list");
        await watched(socket, 1);
      }
      // It ends during the outage.
      await changeLease(LEASE_MS);
      await postgres.down();
      const from = performance.now();
      const waiting = a.post("/api/mutation", { path: "notes:add", args: { text: "late" } });
      const passed = b.post("/api/mutation", {
        path: "notes:add",
        args: { text: "late, by way of the other" },
      });
      sockets[0]?.socket.send({
        type: "Mutation",
        requestId: 1,
        udfPath: "notes:add",
        args: { text: "late, by a socket" },
      });
      for (const { socket } of sockets) {
        watch(socket, 1, "notes:me");
        const { modifications, endVersion } = await watched(socket, 2);
        assert.equal(modifications.length, 1, "a new query is answered");
        assert.ok(endVersion.ts >= before);
      }
      for (const server of [a, b]) {
        await until(async () => (await get(server, "/api/health/ready")).body.cluster.database === "away");
        const { body: { value: shown } } = await server.post("/api/query", { path: "notes:list", args: {} });
        assert.ok(shown.includes("kept"));
        assert.ok(!shown.includes("late"), "what is not kept is shown to nobody");
      }
      for (const { status, body } of await Promise.all([waiting, passed])) {
        assert.deepEqual([status, body.errorData?.code], [503, "unavailable"]);
      }
      assert.ok(performance.now() - from >= clusterLimits.writeWaitMs, "it is waited for");
      const refused = await sockets[0]?.socket.message(({ type }) => type === "MutationResponse");
      assert.deepEqual([refused.success, refused.errorData?.code], [false, "unavailable"]);
      // On a suspended machine the other server may have started to lead. No client connects to it now.
      const leads = async (server: TestServer) =>
        (await get(server, "/api/health/ready")).body.cluster.role === "leader";
      const [leader, follower] = await leads(a) ? [a, b] : [b, a];
      await until(async () => (await get(leader, "/api/health/ready")).status === 503, {
        what: "the leader reports it",
      });
      assert.equal(
        (await get(follower, "/api/health/ready")).status,
        200,
        "a follower reads, which is what it does",
      );
      await postgres.up();
      // A mutation without an answer fails, and the next one continues at the end of the log.
      await until(() => add(a, "after").then((ts) => ts > before, () => false));
      for (const { server, socket } of sockets) {
        await until(async () => (await notes(server)).includes("after"));
        assert.deepEqual((await notes(server)).filter((text) => text.startsWith("late")), []);
        await until(async () => (await get(server, "/api/health/ready")).body.status === "ready");
        // The other server may have acquired an expired lease first. Then the clients must reconnect.
        const shown = () => socket.messages.some((message) => JSON.stringify(message).includes("after"));
        await until(() => shown() || socket.closeCode === 1012, {
          what: "the result arrives or the socket is closed",
        });
        await socket[Symbol.asyncDispose]();
      }
      await changeLease(LONG_LEASE_MS);
    },
  );

  await steps.step(
    "[PG8] a stopping server hands over the lease, and returns as a follower",
    async () => {
      await a.restart(async () => {
        await until(() => leads(b), { what: "the other server leads" });
        await add(b, "under another leader");
      });
      assert.equal(await leads(a), false);
      assert.ok((await notes(a)).includes("under another leader"));
      assert.deepEqual(await notes(a), await notes(b));
      assert.equal((await get(a, "/api/admin/cluster", bearer)).body.role, "follower");
    },
  );

  await steps.step(
    "[PG14] a backup of any server is an ordinary archive; cluster data cannot be served by a single server",
    async () => {
      const out = join(rig.folder, "backup.tar.zst");
      const dataDir = join(rig.folder, "restored");
      {
        await using c = await rig.start("c");
        await until(async () => (await notes(c)).length === (await notes(b)).length);
        const parts = { withAux: false, withFiles: false, includeSecret: true };
        await createBackup({ dataDir: join(rig.folder, "c"), out, ...parts });
      }
      await Deno.mkdir(dataDir);
      await stageRestore({ dataDir, archive: out, source: "backup.tar.zst", withSecret: true });
      {
        await using alone = await startTestServer({ functions, config: { dataDir } });
        assert.deepEqual(await notes(alone), await notes(b));
        await add(alone, "of its own");
      }
      await assert.rejects(
        startTestServer({ functions, config: { dataDir: join(rig.folder, "c") } }),
        /its commits come from "cluster .*--cluster/,
      );
      await assert.rejects(
        startTestServer({ functions, config: { dataDir, cluster: rig.config() } }),
        (error) => {
          assert.ok(error instanceof StartError);
          assert.equal(
            error.message,
            `There is already a cluster at ${
              addressText(rig.config().database)
            }, and the data in "${dataDir}" belongs to a single ` +
              "server. Pass an empty folder with --data, or select another schema",
          );
          return true;
        },
      );
      const elsewhere = rig.config({ url: `${rig.url}?schema=elsewhere` });
      const data = join(rig.folder, "c");
      const { body: { id } } = await get(b, "/api/admin/cluster", bearer);
      await assert.rejects(rig.start("c", { cluster: elsewhere }), (error) => {
        assert.ok(error instanceof StartError);
        assert.equal(
          error.message,
          `The data in "${data}" belongs to cluster ${id}, which is not at ${
            addressText(elsewhere.database)
          }`,
        );
        return true;
      });
      const client = await postgres.client(elsewhere.database.database);
      const { rows } = await client.query("select 1 from pg_namespace where nspname = 'elsewhere'");
      await client.end();
      assert.deepEqual(rows, []);
      // A restore would replace the cluster's data on one server: it is neither staged nor applied at the start.
      const refused = await fetch(`${b.url}/api/admin/restore?name=backup.tar.zst`, {
        method: "POST",
        headers: { Authorization: `Bearer ${bearer}` },
        body: await Deno.readFile(out),
      });
      assert.equal(refused.status, 400);
      assert.match(await refused.text(), /server of a cluster cannot be restored/);
      const member = join(rig.folder, "c");
      const database = await Deno.readFile(join(member, "data.db"));
      await stageRestore({ dataDir: member, archive: out, source: "backup.tar.zst", withSecret: true });
      await assert.rejects(
        rig.start("c"),
        /"backup.tar.zst" is staged .*cluster cannot be restored. Cancel it/,
      );
      assert.deepEqual(await Deno.readFile(join(member, "data.db")), database);
      assert.equal(await cancelRestore(member), true);
      await using c = await rig.start("c");
      await until(async () => (await notes(c)).length === (await notes(b)).length);
    },
  );

  await steps.step(
    "[PG24] a point in time is restored outside the cluster, from a snapshot and the log",
    async () => {
      const ts = await add(b, "right");
      const expected = await notes(b);
      const toTime = Date.now();
      await pause(5);
      await add(b, "a mistake");
      const { database: address, snapshots } = rig.config();
      const given = (changes: Partial<OptionValues>) => {
        const defaults = Object.entries(allOptions).map(([name, spec]) => [name, spec.default]);
        return { ...Object.fromEntries(defaults), clusterSnapshots: snapshots, ...changes } as OptionValues;
      };
      const from = { kind: "postgres", address } as const;
      const list = await withReplica(
        given({}),
        from,
        (target, generations) =>
          Promise.resolve(listText(generations, { location: target.location, json: true })),
      );
      const replica = JSON.parse(list);
      assert.equal(replica.place, addressText(address));
      assert.ok(replica.generations[0].ranges[0].toTs > ts);
      for (const [folder, point] of Object.entries({ "to a ts": { toTs: ts }, "to a time": { toTime } })) {
        const data = join(rig.folder, folder);
        await Deno.mkdir(data);
        const options = given({ data, ...point });
        await withReplica(
          options,
          from,
          (target, generations) => stageChosen(target, choose(generations, { options, target }), options),
        );
        await using then = await startTestServer({ functions, config: { dataDir: data } });
        assert.deepEqual(await notes(then), expected, folder);
        await add(then, "of its own");
      }
      assert.ok((await notes(b)).includes("a mistake"));
      // It reads large responses, perhaps over a slow link.
      await using reading = restoreConnection(address);
      const [limit] = await reading.query({ name: "limit", text: "show statement_timeout" });
      assert.deepEqual(limit, { statement_timeout: "30s" });
      const none = { ...from, address: { ...address, schema: "nobody" } };
      await assert.rejects(
        withReplica(given({}), none, () => Promise.resolve()),
        (error) => {
          assert.ok(error instanceof StartError);
          assert.equal(
            error.message,
            `There is no cluster at ${addressText(none.address)}. Nothing has changed`,
          );
          return true;
        },
      );
    },
  );
});
