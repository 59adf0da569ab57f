/** What cannot be a server of a cluster: one clear line each, and nothing is written. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { parsePostgresUrl, placeOf } from "../../mod/cluster/postgres/place.ts";
import { resolveConfig } from "../../mod/config/resolve_config.ts";
import { options, type ServeOptions } from "../../mod/config/options.ts";
import { StartError } from "../../mod/config/start_error.ts";
import { joinCluster } from "../../mod/server/features/cluster.ts";
import { testConfig } from "../server/support/fake_backend.ts";
import { TestPostgres } from "./support/postgres.ts";
import { ClusterRig } from "./support/servers.ts";

const place = parsePostgresUrl("postgres://app:hidden@db.example/app");

function given(changes: Partial<ServeOptions>): Promise<unknown> {
  const defaults = Object.entries(options).map(([name, spec]) => [name, spec.default]);
  const cluster = {
    cluster: place,
    clusterSecret: "a secret of all servers, 2030",
    clusterSnapshots: { kind: "folder", path: "/mnt/all" },
    storage: { bucket: "files", prefix: "" },
    s3AccessKeyId: "key",
    s3SecretAccessKey: "secret",
  };
  return resolveConfig({ ...Object.fromEntries(defaults), ...cluster, ...changes } as ServeOptions);
}

Deno.test("[PG11] options that do not fit a cluster are refused with the reason", async () => {
  await given({});
  const wrong: readonly (readonly [Partial<ServeOptions>, RegExp])[] = [
    [{ storage: null }, /Files in a data folder would be on one server .*--storage s3/],
    [{ clusterSecret: null }, /share a secret: set SYNCLINE_CLUSTER_SECRET/],
    [{ clusterSnapshots: null }, /begin with snapshots: .*--cluster-snapshots/],
    [{ cluster: null }, /Nothing says where the cluster is/],
    [{ dev: true }, /--dev or --cluster/],
    [{ takeover: true }, /--takeover is for one that is alone/],
    [{ replicateTo: { kind: "folder", path: "/r" } }, /--cluster or --replicate-to, not both/],
    [{ followed: { kind: "folder", path: "/r" } }, /--cluster or --follow, not both/],
  ];
  for (const [changes, reason] of wrong) {
    await assert.rejects(given(changes), (error) => {
      assert.ok(error instanceof StartError);
      assert.match(error.message, reason);
      return true;
    });
  }
});

Deno.test("[PG11] an address is checked before anything is asked of it, and certificates are checked unless it says otherwise", () => {
  assert.deepEqual(place.tls, { rootFile: null });
  assert.equal(parsePostgresUrl("postgres://app@db.example/app?sslmode=disable").tls, null);
  assert.equal(parsePostgresUrl("postgres://app@127.0.0.1:5433/app").tls, null);
  assert.deepEqual(
    parsePostgresUrl("postgres://app@127.0.0.1/app?sslmode=verify-full&sslrootcert=/ca.pem").tls,
    {
      rootFile: "/ca.pem",
    },
  );
  const socket = parsePostgresUrl("postgres://app@localhost/app?host=/run/postgresql&schema=mine");
  assert.deepEqual([socket.host, socket.schema, socket.port], ["/run/postgresql", "mine", 5432]);
  assert.ok(!placeOf(place).includes("hidden"));
  const wrong: readonly (readonly [string, RegExp])[] = [
    ["nonsense", /not a URL/],
    ["mysql://app@db/app", /by postgres:\/\//],
    ["postgres://db/app", /names user, host and database/],
    ["postgres://app@db", /names user, host and database/],
    ["postgres://app@db/app?sslmode=require", /does not check who answers/],
    ["postgres://app@db/app?schema=A-b", /cannot be the cluster's schema/],
    [`postgres://app@db/app?schema=${"s".repeat(57)}`, /cannot be the cluster's schema: .*56 at most/],
    ["postgres://app@db/app?pool=3", /has no parameter "pool"/],
  ];
  for (const [text, reason] of wrong) assert.throws(() => parsePostgresUrl(text), reason);
});

Deno.test("[PG11] who cannot be part of a cluster is told why, and nothing is written", async () => {
  await using postgres = await TestPostgres.start();
  const url = await postgres.database();
  await using rig = await ClusterRig.make(url);
  const name = new URL(url).pathname.slice(1);
  const join_ = async (folder: string, changes: Parameters<typeof rig.config>[0] = {}) => {
    const dataDir = join(rig.folder, folder);
    await Deno.mkdir(dataDir, { recursive: true });
    const config = testConfig({ dataDir, cluster: rig.config(changes) });
    const cluster = await joinCluster(config, { address: "http://here", log: () => {} });
    await cluster?.[Symbol.asyncDispose]();
    return dataDir;
  };
  const refused = async (folder: string, changes: Parameters<typeof rig.config>[0], reason: RegExp) => {
    await assert.rejects(join_(folder, changes), (error) => {
      assert.ok(error instanceof StartError, String(error));
      assert.match(error.message, reason);
      assert.ok(!error.message.includes("\n"));
      return true;
    });
  };
  const empty = async (folder: string) =>
    assert.deepEqual(await Array.fromAsync(Deno.readDir(join(rig.folder, folder))), []);

  const admin = await postgres.client(name);
  const tables = async () =>
    (await admin.query(
      "select count(*)::int as n from information_schema.tables where table_schema !~ '^(pg_|information)'",
    ))
      .rows[0].n;
  await admin.query("create role guest login");
  await admin.query(`revoke create on database ${name} from public`);
  await refused("a", { url: postgres.url(name, "guest") }, /permission denied.*give this user the right/);
  await empty("a");
  assert.equal(await tables(), 0);
  // One that was given its schema needs no other right.
  await admin.query("create schema given authorization guest");
  await join_("given", { url: `${postgres.url(name, "guest")}?schema=given` });

  await join_("a");
  const known = await tables();
  await refused(
    "b",
    { secret: "another secret of some length" },
    /with another secret than --cluster-secret/,
  );
  await empty("b");
  // The data of one cluster at another's schema, which is there or not.
  await refused(
    "a",
    { url: `${url}?schema=given` },
    /made with another secret|are of cluster .*, and at .* is cluster/,
  );
  await refused("b", { url: postgres.url("nowhere") }, /database "nowhere" does not exist/);
  await admin.query("update syncline.cluster set format = 99");
  await refused("b", {}, /has format 99, and this version knows 2: update this server/);
  await admin.query("update syncline.cluster set format = 2");
  await empty("b");
  assert.equal(await tables(), known);
  // One of the format before is made one of this one, by whoever comes first.
  await admin.query("drop table syncline.versions, syncline.version_pieces");
  await admin.query("update syncline.cluster set format = 1");
  await Promise.all([join_("later"), join_("later too")]);
  const { rows: [made_] } = await admin.query<{ format: number }>("select format from syncline.cluster");
  assert.deepEqual([made_?.format, await tables()], [2, known]);
  await admin.end();
  const url2 = await postgres.database();
  // A schema of somebody else that has one of the tables' names: told once, and an own database stays as it is.
  const before = await postgres.client(new URL(url2).pathname.slice(1));
  await before.query("create table public.log (line text)");
  await refused("c", { url: `${url2}?schema=public` }, /holds other tables: name another one/);
  await empty("c");
  await before.end();
  // Words of SQL, and the longest name.
  for (const schema of ["select", "s".repeat(56)]) {
    await join_(`of ${schema}`, { url: `${url2}?schema=${schema}` });
  }
  // Of servers that start at once one makes the cluster, and the others find it.
  const dirs = await Promise.all(["x", "y", "z"].map((folder) => join_(folder, { url: url2 })));
  const made = await Promise.all(dirs.map((dir) => Deno.stat(join(dir, "data.db")).then(() => 1, () => 0)));
  assert.equal(made.reduce((sum, one) => sum + one, 0), 1);
});
