/**
 * `kill -9` of a whole replicating server under load, again and again: what is at the target is the state of one moment,
 * document by document, nothing acknowledged is lost here, and when the server is back the target catches up.
 * `SYNCLINE_DURABILITY_ROUNDS` makes it more kills, and has it say how much the target lacked.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { listGenerations, openTarget, planRestore, stagePoint } from "../../../mod/ops/replication/mod.ts";
import { applyStagedRestore } from "../../../mod/ops/backups/restore/mod.ts";
import { killNow, processTree } from "../../bench/support/process_tree.ts";
import { ServerProcess } from "../../bench/support/server_process.ts";
import { random, seed } from "../../durability/support/rounds.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { pause, until } from "../../support/waiting.ts";
import { documentsIn, type Model, sorted } from "./rig.ts";

const GIVEN = Deno.env.get("SYNCLINE_DURABILITY_ROUNDS");
const ROUNDS = Number(GIVEN ?? 2);
/** So many kills are of one database; then it begins anew, which keeps restores short. */
const ROUNDS_TOGETHER = 20;
const WRITERS = 8;

interface Append {
  readonly writer: number;
  readonly sequence: number;
}

/** An append whose answer came, with the number of appends there were and when that was. */
interface Acknowledged extends Append {
  readonly total: number;
  readonly at: number;
}

const nameOf = ({ writer, sequence }: Append) => `${writer} ${sequence}`;

async function restored(folder: TempFolder): Promise<Model | null> {
  await using target = await openTarget({ kind: "folder", path: folder.at("replica") }, { make: false });
  const generations = await listGenerations(target);
  if (generations.every(({ snapshots }) => snapshots.length === 0)) return null;
  const plan = planRestore(generations, {}, { now: Date.now(), place: target.place });
  const dataDir = await Deno.makeTempDir({ dir: folder.path, prefix: "restored-" });
  await stagePoint(target, plan, { dataDir, localFiles: false });
  await applyStagedRestore(dataDir, new Date());
  const model = documentsIn(join(dataDir, "data.db"));
  await Deno.remove(dataDir, { recursive: true });
  return model;
}

/** What a log holds: its entries in the order in which they were made, and its counts. */
class Log {
  readonly entries: Append[] = [];
  /** Texts of the entries, by place: of both tables. */
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
    for (const { writer, sequence, texts } of [...made.values()].sort((a, b) => a.at - b.at)) {
      this.entries.push({ writer, sequence });
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

/** What the target had of a server that was killed. */
interface Kill {
  readonly missing: number;
  /** From the first acknowledged append that it lacked to the kill; 0 when it lacked none. */
  readonly missingMs: number;
}

async function killedUnderLoad(
  folder: TempFolder,
  { sequences, acknowledged, where }: {
    readonly sequences: number[];
    readonly acknowledged: Acknowledged[];
    readonly where: string;
  },
): Promise<Kill | null> {
  const dataDir = folder.at("data");
  const server = await ServerProcess.start({
    dataDir,
    functions: "tests/durability/functions",
    flags: ["--replicate-to", folder.at("replica")],
  });
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
        acknowledged.push({ writer, sequence, total, at: performance.now() });
      } catch {
        return;
      }
    }
  });
  await until(() => acknowledged.length > before + 50, { what: "the writers write" });
  await pause(random() * 2_000);
  const pids = await processTree(server.pid);
  const killedAt = performance.now();
  await killNow(pids);
  ended = true;
  await Promise.all(writers);
  await server.kill();

  const local = new Log(documentsIn(join(dataDir, "data.db")));
  local.assertWhole(`${where}, here`);
  const places = new Map(local.entries.map((entry, place) => [nameOf(entry), place]));
  for (const one of acknowledged) {
    assert.equal(
      places.get(nameOf(one)),
      one.total - 1,
      `${where}: ${nameOf(one)} is lost or out of its place`,
    );
  }
  const model = await restored(folder);
  if (model === null) return null;
  const there = new Log(model);
  there.assertWhole(`${where}, at the target`);
  assert.deepEqual(there.texts, local.texts.slice(0, there.total), `${where}: the state of one moment`);
  const missing = acknowledged.filter(({ total, at }) => total > there.total && at <= killedAt);
  const firstAt = missing.reduce((first, { at }) => Math.min(first, at), killedAt);
  return { missing: missing.length, missingMs: killedAt - firstAt };
}

/** Kills a server of one data folder some times, lets it go on, and has it stop in order. */
async function killedAgainAndAgain(rounds: number, first: number): Promise<Kill[]> {
  await using folder = new TempFolder();
  const sequences = new Array<number>(WRITERS).fill(0);
  const acknowledged: Acknowledged[] = [];
  const kills: Kill[] = [];
  for (let round = 0; round < rounds; round++) {
    const where = `kill ${first + round} (seed ${seed})`;
    const kill = await killedUnderLoad(folder, { sequences, acknowledged, where });
    if (kill !== null) kills.push(kill);
  }
  const dataDir = folder.at("data");
  const flags = ["--replicate-to", folder.at("replica")];
  const server = await ServerProcess.start({ dataDir, functions: "tests/durability/functions", flags });
  // A start may have to begin with a snapshot; an orderly stop ships what is left.
  await until(async () => await restored(folder) !== null, { what: "a snapshot is there" });
  await server.stop();
  const last = await restored(folder);
  assert.deepEqual(sorted(last ?? new Map()), sorted(documentsIn(join(dataDir, "data.db"))));
  return kills;
}

function tell(text: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(`${text}\n`));
}

Deno.test("[RP6] killed at random moments under load, what is shipped is whole, and nothing is missing once it is back", async () => {
  const kills: Kill[] = [];
  for (let done = 0; done < ROUNDS; done += ROUNDS_TOGETHER) {
    kills.push(...await killedAgainAndAgain(Math.min(ROUNDS_TOGETHER, ROUNDS - done), done));
    if (GIVEN === undefined) continue;
    const times = kills.map(({ missingMs }) => missingMs).sort((a, b) => a - b);
    const at = (share: number) => Math.round(times[Math.floor(share * (times.length - 1))] ?? 0);
    tell(
      `${kills.length} kills: the target lacked acknowledged commits of the last ${at(0.5)} ms (median), ` +
        `${at(0.99)} ms (p99), ${at(1)} ms (most); ${
          Math.max(0, ...kills.map(({ missing }) => missing))
        } commits at most`,
    );
  }
});
