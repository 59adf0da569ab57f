/**
 * Repeated `kill -9` of a replicating server with all its processes under load. The target has a consistent state, document by
 * document, the data folder loses no acknowledged commit, and the target catches up after the restart.
 *
 * The age of the commits that the target lacks depends on the machine: on the interval, and on the time to pack and write. The
 * test asserts only invariants: each shipment contains all commits acknowledged before it started, so missing
 * ones were acknowledged after the previous shipment was written. `shipping_test.ts` checks that a shipment starts within the
 * interval and waits for nothing else. A long run has more kills.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { engineLimits } from "../../../mod/engine/limits.ts";
import {
  listGenerations,
  openTarget,
  planRestore,
  type ReplicaReader,
  type RestorePlan,
  stagePoint,
} from "../../../mod/ops/replication/mod.ts";
import { rowsOf } from "../../../mod/ops/replication/segment.ts";
import { applyStagedRestore } from "../../../mod/ops/backups/restore/mod.ts";
import { killAll, processTree } from "../../support/processes/process_tree.ts";
import { ServerProcess } from "../../support/processes/server_process.ts";
import { random, seed } from "../../durability/support/rounds.ts";
import { repeats } from "../../support/long_runs.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { pause, until } from "../../support/waiting.ts";
import { documentsIn, type Model, sorted } from "./rig.ts";

const ROUNDS = repeats(2, 200);
/** Kills of one database; then a new one is used, which keeps restores short. */
const ROUNDS_TOGETHER = 10;
const WRITERS = 8;

interface Append {
  readonly writer: number;
  readonly sequence: number;
}

/** An acknowledged append, with the number of appends and the time. */
interface Acknowledged extends Append {
  readonly total: number;
  readonly at: number;
  /** The same by the clock of the system, which is that of files. */
  readonly wallAt: number;
}

/** Milliseconds since the epoch, by a monotonic clock. */
const clock = () => performance.timeOrigin + performance.now();

const nameOf = ({ writer, sequence }: Append) => `${writer} ${sequence}`;

/** The newest state at a target. */
interface Restored {
  readonly model: Model;
  /** All that was acknowledged before this time has to be in it, however slow the machine is; ms since the epoch. */
  readonly hasAllBefore: number;
}

async function restored(folder: TempFolder, replica: string): Promise<Restored | null> {
  await using target = await openTarget({ kind: "folder", path: replica }, { make: false });
  const generations = await listGenerations(target);
  if (generations.every(({ snapshots }) => snapshots.length === 0)) return null;
  const plan = planRestore(generations, {}, { now: Date.now(), location: target.location });
  const dataDir = await Deno.makeTempDir({ dir: folder.path, prefix: "restored-" });
  await stagePoint(target, plan, { dataDir, localFiles: false });
  await applyStagedRestore(dataDir, new Date());
  const model = documentsIn(join(dataDir, "data.db"));
  await Deno.remove(dataDir, { recursive: true });
  const isNewest = plan.generation === generations.at(-1)?.name;
  return { model, hasAllBefore: isNewest ? await shipmentBegan(target, { plan, replica }) : -Infinity };
}

/** A time before the last shipment started: the time when the previous one was written. */
async function shipmentBegan(
  target: ReplicaReader,
  { plan: { segments }, replica }: { readonly plan: RestorePlan; readonly replica: string },
): Promise<number> {
  const [before, last] = segments.slice(-2);
  // Those that were merged are written later.
  if (before === undefined || last === undefined || before.level + last.level > 0) return -Infinity;
  const chars = await Array.fromAsync(rowsOf(target, [last]), ({ body }) => body.length);
  const all = chars.reduce((sum, length) => sum + length, 0);
  // Large amounts are shipped in several segments.
  if (all > engineLimits.journalCharsRead / 2) return -Infinity;
  return (await Deno.stat(join(replica, before.file.name))).mtime?.getTime() ?? -Infinity;
}

/** Contents of a log: its entries in their order, and its counts. */
class Log {
  readonly entries: (Append & { readonly at: number })[] = [];
  /** Texts of the entries of both tables, by index. */
  readonly texts: string[][] = [];
  readonly counts = new Map<number, number>();
  total = 0;

  constructor(model: Model) {
    const made = new Map<string, Append & { readonly at: number; readonly texts: string[] }>();
    for (const text of model.values()) {
      const { writer, sequence, count, _creationTime } = JSON.parse(text);
      if (sequence !== undefined) {
        const name = nameOf({ writer, sequence });
        const known = made.get(name) ?? { writer, sequence, at: _creationTime, texts: [] as string[] };
        known.texts.push(text);
        made.set(name, { ...known, at: Math.min(known.at, _creationTime) });
      } else if (count !== undefined && writer !== undefined) this.counts.set(writer, count);
      else if (count !== undefined) this.total = count;
    }
    for (const { writer, sequence, at, texts } of [...made.values()].sort((a, b) => a.at - b.at)) {
      this.entries.push({ writer, sequence, at });
      this.texts.push(texts.sort());
    }
  }

  /** Each append is two documents and two counts in one commit. */
  assertWhole(where: string): void {
    assert.equal(this.entries.length, this.total, where);
    assert.ok(this.texts.every(({ length }) => length === 2), `${where}: half an append`);
    for (const [writer, count] of this.counts) {
      assert.equal(this.entries.filter((entry) => entry.writer === writer).length, count, where);
    }
  }
}

/** Files after a kill, copied while no process writes to them. */
interface Remains {
  readonly where: string;
  readonly at: number;
  /** Answers received before the copy. */
  readonly acknowledged: readonly Acknowledged[];
  readonly database: string;
  readonly replica: string;
}

const flagsOf = (folder: TempFolder) => ["--replicate-to", folder.at("replica")];

async function killedUnderLoad(
  folder: TempFolder,
  { round, sequences, acknowledged, started }: {
    readonly round: number;
    readonly sequences: number[];
    readonly acknowledged: Acknowledged[];
    /** Called when the server has started, before it receives requests. */
    readonly started: () => Promise<void>;
  },
): Promise<Remains> {
  const dataDir = folder.at("data");
  const server = await ServerProcess.start({
    dataDir,
    functions: "tests/durability/functions",
    flags: flagsOf(folder),
  });
  await started();
  const before = acknowledged.length;
  let ended = false;
  const writers = sequences.map(async (_, writer) => {
    while (!ended) {
      const sequence = sequences[writer] ?? 0;
      sequences[writer] = sequence + 1;
      try {
        const { total } = await server.call("mutation", "log:append", { writer, sequence }) as {
          total: number;
        };
        acknowledged.push({ writer, sequence, total, at: clock(), wallAt: Date.now() });
      } catch {
        return;
      }
    }
  });
  await until(() => acknowledged.length > before + 50, { what: "the writers write" });
  // Some kills are late, when the duration of shipping is known.
  await pause(random() * (round % 8 === 7 ? 6_000 : 1_500));
  const pids = await processTree(server.pid);
  const at = clock();
  await killAll(pids);
  ended = true;
  await Promise.all(writers);
  await server.kill();
  const copy = folder.at(`killed-${round}`);
  await Deno.mkdir(copy);
  await new Deno.Command("cp", {
    args: ["-rp", ...["data/data.db", "data/data.db-wal", "replica"].map((name) => folder.at(name)), copy],
  }).output();
  return {
    where: `kill ${round} (seed ${seed})`,
    ...{ at, acknowledged: [...acknowledged] },
    database: join(copy, "data.db"),
    replica: join(copy, "replica"),
  };
}

/** No acknowledged append is missing here, and the target has an earlier state once it has a snapshot. */
async function checked(
  folder: TempFolder,
  { where, at, acknowledged, database, replica }: Remains,
): Promise<void> {
  const local = new Log(documentsIn(database));
  local.assertWhole(`${where}, here`);
  const places = new Map(local.entries.map((entry, place) => [nameOf(entry), place]));
  for (const one of acknowledged) {
    assert.equal(
      places.get(nameOf(one)),
      one.total - 1,
      `${where}: ${nameOf(one)} is lost or out of its place`,
    );
  }
  const state = await restored(folder, replica);
  if (state === null) return;
  const there = new Log(state.model);
  there.assertWhole(`${where}, at the target`);
  assert.deepEqual(there.texts, local.texts.slice(0, there.total), `${where}: the state of one moment`);
  const missing = acknowledged.filter((one) => one.total > there.total && one.at <= at);
  assert.deepEqual(
    missing.filter(({ wallAt }) => wallAt < state.hasAllBefore),
    [],
    `${where}: what was there when the last shipment began`,
  );
}

/** Kills a server of one data folder some times, restarts it after each kill, and stops it in order. */
async function killedAgainAndAgain(rounds: number, first: number): Promise<void> {
  await using folder = new TempFolder();
  const sequences = new Array<number>(WRITERS).fill(0);
  const acknowledged: Acknowledged[] = [];
  // One is checked while the next server starts.
  let remains: Remains | null = null;
  const look = async () => {
    if (remains === null) return;
    await checked(folder, remains);
    await Deno.remove(join(remains.database, ".."), { recursive: true });
  };
  for (let round = first; round < first + rounds; round++) {
    const looking = look();
    looking.catch(() => {});
    const started = () => looking;
    remains = await killedUnderLoad(folder, { round, sequences, acknowledged, started });
  }
  await look();
  const replica = folder.at("replica");
  const server = await ServerProcess.start({
    dataDir: folder.at("data"),
    functions: "tests/durability/functions",
    flags: flagsOf(folder),
  });
  // A start may have to begin with a snapshot. A graceful stop ships the remaining commits.
  await until(async () => await restored(folder, replica) !== null, { what: "a snapshot is there" });
  await server.stop();
  const last = await restored(folder, replica);
  assert.deepEqual(sorted(last?.model), sorted(documentsIn(folder.at("data", "data.db"))));
}

Deno.test("[RP6] killed at random moments under load, shipped segments are intact, and all are complete after the restart", async () => {
  for (let done = 0; done < ROUNDS; done += ROUNDS_TOGETHER) {
    await killedAgainAndAgain(Math.min(ROUNDS_TOGETHER, ROUNDS - done), done);
  }
});
