/** A log that grows and is trimmed while a point in time is restored from it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import {
  LocationError,
  type ObjectBody,
  type ObjectReader,
} from "../../../mod/kit/locations/object_store.ts";
import { chainedSum, firstSum, type JournalRow } from "../../../mod/engine/mod.ts";
import { applyStagedRestore } from "../../../mod/ops/backups/restore/mod.ts";
import {
  listGenerations,
  type LoggedSnapshot,
  LogReplica,
  type LogSource,
  planRestore,
  stagePoint,
} from "../../../mod/ops/replication/mod.ts";
import { rowsOf } from "../../../mod/ops/replication/segment.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { documentsIn, Rig, sorted } from "./rig.ts";

const GENERATION = "20300101T000000Z-00000000";
const ROWS_READ = 5;
/** An endless listing fails after this many reads. */
const READS_MAX = 1_000;

/** A log in memory. */
class MemoryLog implements LogSource {
  readonly location = "a log";
  readonly generation: string;
  rows: JournalRow[] = [];
  kept: (LoggedSnapshot & { readonly name: string })[] = [];
  /** Where the archives of the snapshots are. */
  archives: ObjectReader | null = null;
  reads = 0;
  rowsGiven = 0;
  onRead: () => void = () => {};
  onDownload: (when: "before" | "behind") => void = () => {};

  constructor(generation = GENERATION) {
    this.generation = generation;
  }

  snapshots(): Promise<readonly LoggedSnapshot[]> {
    return Promise.resolve(this.kept.map(({ name: _, ...snapshot }) => snapshot));
  }

  end(): Promise<number> {
    return Promise.resolve(this.rows.at(-1)?.seq ?? 0);
  }

  rowsBehind(seq: number, upTo: number): Promise<readonly JournalRow[]> {
    if (++this.reads > READS_MAX) throw new Error("It reads on and on");
    this.onRead();
    const rows = this.rows.filter((row) => row.seq > seq && row.seq <= upTo).slice(0, ROWS_READ);
    this.rowsGiven += rows.length;
    return Promise.resolve(rows);
  }

  async open(seq: number): Promise<ObjectBody | null> {
    this.onDownload("before");
    const name = this.kept.find((snapshot) => snapshot.seq === seq)?.name;
    const body = name === undefined ? null : await this.archives?.get(name) ?? null;
    return body?.pipeThrough(new TransformStream({ flush: () => this.onDownload("behind") })) ?? null;
  }

  /** Like a leader that has created another snapshot. */
  trim(seq: number): void {
    this.rows = this.rows.filter((row) => row.seq >= seq);
    this.kept = this.kept.filter((snapshot) => snapshot.seq >= seq);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}

/** A log of rows without contents, with a snapshot before the first and one amid them. */
function madeLog({ count, snapshotAt }: { readonly count: number; readonly snapshotAt: number }) {
  const log = new MemoryLog();
  const first = { seq: 0, ts: 0, sum: firstSum(GENERATION) };
  const add = () => {
    const { seq, ts, sum } = log.rows.at(-1) ?? first;
    const row = { seq: seq + 1, tsBefore: ts, ts: ts + 1, at: ts + 1, body: "{}" };
    log.rows.push({ ...row, sum: chainedSum(sum, row) });
  };
  for (let n = 0; n < count; n++) add();
  const amid = log.rows[snapshotAt - 1] ?? assert.fail();
  log.kept = [first, amid].map(({ seq, ts, sum }) => ({ seq, ts, sum, at: ts, bytes: 1, name: "" }));
  return { log, add };
}

Deno.test("[PG24] a growing log is listed up to its end at that time, in segments of equal size, each readable separately", async () => {
  const { log, add } = madeLog({ count: 23, snapshotAt: 12 });
  log.onRead = add;
  await using replica = new LogReplica(log);
  const [generation, ...others] = await listGenerations(replica);
  assert.equal(others.length, 0);
  const spans = generation?.segments.map(({ fromSeq, toSeq }) => [fromSeq, toSeq]);
  assert.deepEqual(spans, [[1, 5], [6, 10], [11, 12], [13, 17], [18, 22], [23, 23]]);
  assert.deepEqual(generation?.ranges.map(({ fromTs, toTs }) => [fromTs, toTs]), [[0, 23]]);
  log.rowsGiven = 0;
  const read = await Array.fromAsync(rowsOf(replica, generation?.segments ?? []));
  assert.deepEqual(read.map(({ seq }) => seq), Array.from({ length: 23 }, (_, n) => n + 1));
  assert.equal(log.rowsGiven, 23, "nothing is fetched that is thrown away");
});

Deno.test("[PG24] the trimming of a log during a restore is reported as such, not as damage", async () => {
  const { log } = madeLog({ count: 23, snapshotAt: 12 });
  await using replica = new LogReplica(log);
  const generations = await listGenerations(replica);
  const trimmed = (what: string) => (error: unknown) => {
    assert.ok(error instanceof LocationError, String(error));
    assert.equal(error.fault, "asked");
    assert.ok(
      error.message.startsWith(`${what}: while "a log" was read, its servers made another`),
      error.message,
    );
    assert.match(error.message, /Try again/);
    return true;
  };
  log.onRead = () => void (log.reads === 2 && log.trim(12));
  log.reads = 0;
  await assert.rejects(listGenerations(replica), trimmed("Row 6 is no longer in the log"));
  const [first] = generations[0]?.segments ?? [];
  assert.ok(first !== undefined);
  await assert.rejects(
    Array.fromAsync(rowsOf(replica, [first])),
    trimmed("Row 1 is no longer in the log"),
  );
  // Kept rows are listed as before.
  const [{ ranges } = assert.fail()] = await listGenerations(replica);
  assert.deepEqual(ranges.map(({ fromTs, toTs }) => [fromTs, toTs]), [[12, 23]]);
});

Deno.test("[PG24] rows removed while the snapshot is fetched were fetched before; a snapshot that is removed first is reported", async () => {
  await using rig = await Rig.start({ seed: 5, merges: [] });
  for (let n = 0; n < 12; n++) {
    rig.group();
    await rig.ship();
  }
  await rig.close();
  await using target = await rig.target();
  const [{ name, snapshots: [snapshot], segments } = assert.fail()] = await listGenerations(target);
  assert.ok(snapshot !== undefined);
  const log = new MemoryLog(name);
  const { seq, ts, sum, at, file } = snapshot;
  const all = await Array.fromAsync(rowsOf(target, segments));
  const fill = () => {
    log.rows = all;
    log.kept = [{ seq, ts, sum, at, bytes: file.size, name: file.name }];
    log.archives = target;
  };
  fill();
  assert.ok(all.length > ROWS_READ);
  await using replica = new LogReplica(log);
  await using folder = new TempFolder();
  const toTs = rig.models.length - 2;
  const plan = planRestore(await listGenerations(replica), { toTs }, {
    now: Date.now(),
    location: replica.location,
  });
  const stage = (dataDir: string) => stagePoint(replica, plan, { dataDir, localFiles: false });
  const last = all.at(-1)?.seq ?? assert.fail();

  log.onDownload = (when) => void (when === "behind" && log.trim(last));
  const then = join(folder.path, "then");
  await Deno.mkdir(then);
  await stage(then);
  await applyStagedRestore(then, new Date());
  assert.deepEqual(sorted(documentsIn(join(then, "data.db"))), sorted(rig.models[toTs]));
  const left = (await Array.fromAsync(Deno.readDir(then))).map((entry) => entry.name);
  assert.deepEqual(left.filter((entry) => entry.startsWith("incoming")), []);

  fill();
  log.onDownload = (when) => void (when === "before" && log.trim(last));
  const late = join(folder.path, "late");
  await Deno.mkdir(late);
  await assert.rejects(stage(late), (error) => {
    assert.ok(error instanceof LocationError, String(error));
    assert.ok(
      error.message.startsWith(`The snapshot of ts ${ts} no longer exists: while`),
      error.message,
    );
    return true;
  });
  assert.deepEqual(await Array.fromAsync(Deno.readDir(late)), []);

  // A listed row that is missing: this is damage, and retries do not help.
  fill();
  log.onDownload = () => log.archives = null;
  await assert.rejects(stage(late), /The snapshot of ts \d+ in generation \S+ is missing$/);
});
