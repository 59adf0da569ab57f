/** Versions of the app's code in a cluster's database: upload, download, and cleanup. */
import assert from "node:assert/strict";
import { AwayError, PostgresConnection } from "../../mod/cluster/postgres/connection.ts";
import { createCluster } from "../../mod/cluster/postgres/identity.ts";
import { clusterLimits } from "../../mod/cluster/postgres/limits.ts";
import type { PostgresCluster } from "../../mod/cluster/postgres/mod.ts";
import { parsePostgresUrl } from "../../mod/cluster/postgres/postgres_address.ts";
import { SharedVersions } from "../../mod/cluster/postgres/shared_versions.ts";
import { statementsFor } from "../../mod/cluster/postgres/statements.ts";
import { VersionError, type VersionStore } from "../../mod/functions/versions/mod.ts";
import { ClusterCode } from "../../mod/server/features/cluster_code.ts";
import { bundleOf } from "../ops/deploy/support.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { needs, postgres } from "../support/services.ts";
import { TestPostgres } from "./support/postgres.ts";

/** A version of two pieces. */
const bundle = (fill: number) => new Uint8Array(clusterLimits.versionPieceBytes + 10).fill(fill);
const streamOf = (bytes: Uint8Array) => new Blob([bytes.slice()]).stream();

Deno.test(
  needs(
    postgres,
    "[PG20] a version is stored in the cluster's database completely or not at all, and is kept while the log names it",
  ),
  async () => {
    await using postgres = await TestPostgres.start();
    const place = parsePostgresUrl(await postgres.database());
    await using connection = new PostgresConnection({ address: place });
    const identity = {
      id: "one",
      generation: "20300101T000000Z-00000000",
      first: { seq: 0, ts: 0, sum: "sum" },
      serviceKey: "key",
    };
    assert.equal(await createCluster(connection, identity, { address: place, secret: "a secret" }), true);
    const statements = statementsFor(place.schema);
    const versions = new SharedVersions({ connection, statements });
    const run = (text: string) => connection.query({ name: "", text });
    const read = async (hash: string) => {
      const bytes = await versions.read(hash);
      return bytes === null ? null : new Uint8Array(await new Response(bytes).arrayBuffer());
    };
    const unnamed = { named: null, seq: 0 };

    // Two concurrent uploads. One is paused.
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const slow = versions.put("first", () => Promise.resolve(readable), unnamed).then(
      () => true,
      (error) => error,
    );
    await writer.write(bundle(1).subarray(0, clusterLimits.versionPieceBytes));
    await versions.put("first", () => Promise.resolve(streamOf(bundle(1))), unnamed);
    await writer.write(bundle(1).subarray(clusterLimits.versionPieceBytes));
    await writer.close();
    await slow;
    assert.deepEqual(await read("first"), bundle(1));

    // An incomplete version is uploaded again, and unused pieces are removed.
    await run("delete from syncline.version_pieces where hash = 'first' and piece = 1");
    await run("insert into syncline.version_pieces values ('nobody', 0, '')");
    await versions.put("first", () => Promise.resolve(streamOf(bundle(1))), unnamed);
    assert.deepEqual(await read("first"), bundle(1));
    const [pieces] = await run("select count(*)::int as count from syncline.version_pieces");
    assert.equal(pieces?.["count"], 2);

    // Named in the log, but not served by any server.
    await run("update syncline.versions set made_at = now() - interval '2 days'");
    await run(
      "insert into syncline.log (seq, epoch, ts_before, ts, at, sum, body) values (5, 1, 4, 5, 0, '', '')",
    );
    await versions.put("second", () => Promise.resolve(streamOf(bundle(2))), { named: "first", seq: 5 });
    assert.deepEqual(await read("first"), bundle(1));
    assert.deepEqual(await versions.list(), []);
    // The log does not name it any more.
    await versions.put("third", () => Promise.resolve(streamOf(bundle(3))), { named: "second", seq: 5 });
    assert.equal(await read("first"), null);
    assert.deepEqual(await read("second"), bundle(2));
  },
);

/** Saves the bundle of a version that the server does not have. */
function codeOf(dataDir: string, read: ReadableStream<Uint8Array<ArrayBuffer>>): ClusterCode {
  const cluster = { versions: { read: () => Promise.resolve(read) } } as unknown as PostgresCluster;
  return new ClusterCode({ cluster, config: { dataDir, pinned: false }, log: () => {} });
}

Deno.test("[PG19] an unreachable database during a download is not an error of the version; a full disk is reported", async () => {
  await using folder = new TempFolder();
  const full = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
  const versions = {
    get: () => Promise.reject(new VersionError("it is not here")),
    adopt: () => Promise.reject(full),
  } as unknown as VersionStore;
  const { bytes } = await bundleOf({ "functions/app.ts": "export {};" });
  const away = new AwayError("the connection is lost", { asked: true });
  let pulled = false;
  const broken = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      if (pulled) return controller.error(away);
      pulled = true;
      controller.enqueue(bytes.slice(0, 40));
    },
  });
  await assert.rejects(codeOf(folder.at("data"), broken).fetch("hash", versions), (error) => error === away);
  await assert.rejects(
    codeOf(folder.at("data"), streamOf(bytes) as ReadableStream<Uint8Array<ArrayBuffer>>).fetch(
      "hash",
      versions,
    ),
    (error) => error instanceof VersionError && error.cause === full,
  );
});
