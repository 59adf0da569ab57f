/** Reads of a restore from a cluster, and their retries while the database is unreachable. */
import assert from "node:assert/strict";
import { LocationError, type ObjectStore } from "../../mod/kit/locations/object_store.ts";
import { ClusterSource } from "../../mod/cluster/postgres/cluster_source.ts";
import { AwayError, type Statement } from "../../mod/cluster/postgres/connection.ts";
import { clusterLimits } from "../../mod/cluster/postgres/limits.ts";
import { statementsFor } from "../../mod/cluster/postgres/statements.ts";
import { FakeClock } from "../support/fake_clock.ts";

/** A database with ten rows of a log, which can be unreachable. */
class Database implements AsyncDisposable {
  readonly asked: (readonly [name: string, ...values: readonly unknown[]])[] = [];
  isAway = false;

  query({ name }: Statement, ...values: unknown[]): Promise<readonly Record<string, unknown>[]> {
    this.asked.push([name, ...values]);
    if (this.isAway) return Promise.reject(new AwayError("It is away", { asked: false }));
    if (name === "syncline_end") return Promise.resolve([{ seq: "10", ts: "10", sum: "" }]);
    assert.equal(name, "syncline_read");
    const [after = 0, count = 0] = values.map(Number);
    const rows = Array.from({ length: 10 }, (_, n) => n + 1).filter((seq) => seq >= after).slice(0, count);
    return Promise.resolve(
      rows.map((seq) => ({ seq: String(seq), ts_before: seq - 1, ts: seq, at: seq, sum: "", text: "{}" })),
    );
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}

function sourceOf(database: Database, clock: FakeClock): ClusterSource {
  return new ClusterSource({
    connection: database,
    statements: statementsFor("syncline"),
    location: "a cluster",
    generation: "20300101T000000Z-00000000",
    archives: database as unknown as ObjectStore,
    clock,
  });
}

Deno.test("[PG24] a read requests no more rows of the log than needed", async () => {
  const database = new Database();
  await using source = sourceOf(database, new FakeClock());
  assert.equal(await source.end(), 10);
  const seqs = async (seq: number, upTo: number) =>
    (await source.rowsBehind(seq, upTo)).map((row) => row.seq);
  assert.deepEqual(await seqs(3, 5), [4, 5]);
  assert.deepEqual(await seqs(0, 2), [1, 2]);
  assert.deepEqual(await seqs(9, 1_000_000), [10]);
  const { rowsRead, restoreRowBytesRead } = clusterLimits;
  assert.deepEqual(database.asked.slice(1), [
    ["syncline_read", 3, 3, restoreRowBytesRead],
    ["syncline_read", 0, 3, restoreRowBytesRead],
    ["syncline_read", 9, rowsRead, restoreRowBytesRead],
  ]);
});

Deno.test("[PG24] reads are retried for a bounded time while the database is unreachable", async () => {
  const clock = new FakeClock();
  const database = new Database();
  await using source = sourceOf(database, clock);
  database.isAway = true;
  const rows = source.rowsBehind(0, 3);
  await clock.advance(clusterLimits.restoreAwayMs - clusterLimits.restorePauseMs);
  assert.ok(database.asked.length > 10, `${database.asked.length} times`);
  database.isAway = false;
  await clock.advance(clusterLimits.restorePauseMs);
  assert.deepEqual((await rows).map(({ seq }) => seq), [1, 2, 3]);

  database.isAway = true;
  const failed = assert.rejects(source.end(), (error) => {
    assert.ok(error instanceof LocationError);
    assert.deepEqual(
      [error.fault, error.message],
      ["away", "The cluster's database at a cluster cannot be reached: It is away"],
    );
    return true;
  });
  await clock.advance(clusterLimits.restoreAwayMs);
  await failed;
});
