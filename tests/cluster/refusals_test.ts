/** Servers that cannot join a cluster: each gets one clear message, and nothing is written. */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { join } from "node:path";
import type { Client } from "../../mod/cluster/postgres/driver.d.ts";
import { addressText, parsePostgresUrl } from "../../mod/cluster/postgres/postgres_address.ts";
import { resolveConfig } from "../../mod/config/resolve_config.ts";
import { options, type ServeOptions } from "../../mod/config/options.ts";
import { StartError } from "../../mod/config/start_error.ts";
import { joinCluster } from "../../mod/server/features/cluster.ts";
import { testConfig } from "../server/support/fake_backend.ts";
import { needs, postgres } from "../support/services.ts";
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
  const folder = { kind: "folder", path: "/r" } as const;
  const wrong: readonly (readonly [Partial<ServeOptions>, string])[] = [
    [
      { storage: null },
      "--cluster needs file storage that all servers can reach: pass --storage s3://bucket",
    ],
    [{ clusterSecret: null }, "--cluster needs a shared secret: set SYNCLINE_CLUSTER_SECRET"],
    [
      { clusterSnapshots: null },
      "--cluster needs a location for snapshots: pass --cluster-snapshots",
    ],
    [
      { cluster: null },
      "--cluster-secret, --cluster-snapshots, --cluster-address and --cluster-listen need --cluster",
    ],
    [{ dev: true }, "--dev and --cluster cannot be combined"],
    [
      { takeover: true },
      "--cluster and --takeover cannot be combined: another server of the cluster takes over",
    ],
    [
      { replicateTo: folder },
      "--cluster and --replicate-to cannot be combined",
    ],
    [{ followed: folder }, "--cluster and --follow cannot be combined"],
  ];
  for (const [changes, line] of wrong) {
    await assert.rejects(given(changes), (error) => {
      assert.ok(error instanceof StartError);
      assert.equal(error.message, line);
      return true;
    });
  }
});

Deno.test("[PG11] the address is validated first, and certificates are verified unless it disables this", () => {
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
  assert.ok(!addressText(place).includes("hidden"));
  const wrong: readonly (readonly [string, RegExp])[] = [
    ["nonsense", /not a URL/],
    ["mysql://app@db/app", /must begin with postgres:\/\//],
    ["postgres://db/app", /must name user, host and database/],
    ["postgres://app@db", /must name user, host and database/],
    ["postgres://app@db/app?sslmode=require", /does not verify the server/],
    ["postgres://app@db/app?schema=A-b", /cannot be the schema of the cluster/],
    [`postgres://app@db/app?schema=${"s".repeat(57)}`, /cannot be the schema of the cluster: use at most 56/],
    ["postgres://app@db/app?pool=3", /Unknown parameter "pool"/],
  ];
  for (const [text, reason] of wrong) assert.throws(() => parsePostgresUrl(text), reason);
});

/** All files of a folder by path, except those that inspecting a database creates. */
async function contentsOf(folder: string): Promise<Record<string, string>> {
  const contents: Record<string, string> = {};
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = join(folder, name);
    if (isDirectory) {
      contents[`${name}/`] = "";
      for (const [inner, text] of Object.entries(await contentsOf(path))) contents[`${name}/${inner}`] = text;
    } else if (!/-(?:shm|wal)$/.test(name) || name.endsWith("-wal") && (await Deno.stat(path)).size > 0) {
      contents[name] = hash("sha256", await Deno.readFile(path));
    }
  }
  return contents;
}

/** The contents of a database, by schema and table. */
async function rowsOf(client: Client): Promise<Record<string, string>> {
  const { rows: schemas } = await client.query<{ name: string }>(
    "select nspname as name from pg_namespace where nspname !~ '^(pg_|information_schema)' order by 1",
  );
  const all: Record<string, string> = { schemas: schemas.map(({ name }) => name).join(" ") };
  const { rows: tables } = await client.query<{ at: string }>(
    `select quote_ident(table_schema) || '.' || quote_ident(table_name) as at from information_schema.tables
     where table_schema !~ '^(pg_|information_schema)'`,
  );
  for (const { at } of tables) {
    const { rows: [row] } = await client.query<{ rows: string }>(
      `select coalesce(string_agg(t::text, '|' order by t::text), '') as rows from ${at} t`,
    );
    all[at] = row?.rows ?? "";
  }
  return all;
}

Deno.test(
  needs(postgres, "[PG11] a server that cannot join a cluster gets the reason, and nothing is written"),
  async () => {
    await using postgres = await TestPostgres.start();
    const url = await postgres.database();
    await using rig = await ClusterRig.make(url);
    const name = new URL(url).pathname.slice(1);
    const at = `127.0.0.1:${postgres.port}`;
    const here = `${at}/${name}, schema syncline`;
    const join_ = async (folder: string, changes: Parameters<typeof rig.config>[0] = {}) => {
      const dataDir = join(rig.folder, folder);
      await Deno.mkdir(dataDir, { recursive: true });
      const config = testConfig({ dataDir, cluster: rig.config(changes) });
      const cluster = await joinCluster(config, { address: "http://here", log: () => {} });
      await cluster?.[Symbol.asyncDispose]();
      return dataDir;
    };
    const admin = await postgres.client(name);
    let looks = admin;
    const refused = async (folder: string, changes: Parameters<typeof rig.config>[0], line: string) => {
      const dataDir = join(rig.folder, folder);
      await Deno.mkdir(dataDir, { recursive: true });
      const before = [await contentsOf(dataDir), await rowsOf(looks)];
      await assert.rejects(join_(folder, changes), (error) => {
        assert.ok(error instanceof StartError, String(error));
        assert.equal(error.message, line);
        return true;
      });
      assert.deepEqual([await contentsOf(dataDir), await rowsOf(looks)], before);
    };
    const idOf = async (schema: string) =>
      (await admin.query<{ id: string }>(`select id from ${schema}.cluster`)).rows[0]?.id;

    await admin.query("create role guest login");
    await admin.query(`revoke create on database ${name} from public`);
    await refused(
      "a",
      { url: postgres.url(name, "guest") },
      `The cluster's database at ${here} refuses: permission denied for database ${name}: ` +
        "grant this user the right to create the schema, or the ownership of the schema",
    );
    // A user with a given schema needs no other privilege, and cannot join without privileges on its tables.
    await admin.query("create schema given authorization guest");
    await join_("given", { url: `${postgres.url(name, "guest")}?schema=given` });

    await join_("a");
    await refused(
      "b",
      { url: postgres.url(name, "guest") },
      `The cluster's database at ${here} refuses: permission denied for schema syncline: ` +
        "grant this user the right to create the schema, or the ownership of the schema",
    );
    await refused(
      "b",
      { secret: "another secret of some length" },
      `The cluster at ${here} was made with another secret than --cluster-secret`,
    );
    // The data of one cluster with the schema of another.
    await refused(
      "a",
      { url: `${url}?schema=given` },
      `The data in "${join(rig.folder, "a")}" belongs to cluster ${await idOf(
        "syncline",
      )}, but the cluster at ` +
        `${at}/${name}, schema given is ${await idOf("given")}`,
    );
    await refused(
      "b",
      { url: postgres.url("nowhere") },
      `The cluster's database at ${at}/nowhere, schema syncline refuses: database "nowhere" does not exist`,
    );
    await admin.query("update syncline.cluster set format = 99");
    await refused(
      "b",
      {},
      `The cluster at ${here} has format 99, and this version knows 2: update this server`,
    );
    await admin.query("update syncline.cluster set format = 2");
    const url2 = await postgres.database();
    // A schema of another program with one of the table names. The local database is not changed.
    looks = await postgres.client(new URL(url2).pathname.slice(1));
    await looks.query("create table public.log (line text)");
    await refused(
      "c",
      { url: `${url2}?schema=public` },
      `The schema at ${at}${
        new URL(url2).pathname
      }, schema public contains other tables. Select another one with ?schema=name`,
    );
    // A keyword, and the longest name.
    for (const schema of ["select", "s".repeat(56)]) {
      await join_(`of ${schema}`, { url: `${url2}?schema=${schema}` });
    }
    // Of servers that start at the same time, one creates the cluster, and the others join it.
    const dirs = await Promise.all(["x", "y", "z"].map((folder) => join_(folder, { url: url2 })));
    const made = await Promise.all(dirs.map((dir) => Deno.stat(join(dir, "data.db")).then(() => 1, () => 0)));
    assert.equal(made.reduce((sum, one) => sum + one, 0), 1);
    await looks.end();
    await admin.end();
  },
);
