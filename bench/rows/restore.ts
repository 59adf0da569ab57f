/** A restore from a replica: commits replayed each second, memory, and the time of all of it. */
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import type { BenchContext } from "../context.ts";
import { Child } from "../../tests/support/processes/child.ts";
import { peakMemory } from "../../tests/support/processes/process_tree.ts";
import {
  makeRestorable,
  mergedToOne,
  type Restorable,
  type RestorableOptions,
} from "../support/restorable.ts";
import type { Row } from "../table.ts";

const MB = 1_000_000;
const WAIT_MS = 30 * 60_000;
/** Commits that are groups of their own. */
const ONES = 50_000;
/** As the command is run. */
const HEAP = "--v8-flags=--max-old-space-size=256,--max-semi-space-size=4";

interface Restored extends Restorable {
  readonly commits: number;
  readonly peakBytes: number;
  /** Seconds that making the replica took. */
  readonly making: number;
  /** By the clock, and of all threads of the process. */
  readonly seconds: Record<"unpack" | "replay" | "check" | "all", number>;
  readonly processor: Record<"unpack" | "replay" | "check" | "all", number>;
}

export async function restoreRows(context: BenchContext): Promise<Row[]> {
  const { full } = context;
  const commits = full ? 1_000_000 : 100_000;
  const data = full ? { notes: 950_000, accounts: 200_000 } : { notes: 50_000, accounts: 20_000 };
  const all = await restored(context, { commits, group: 16, ...data });
  const small = { notes: 50_000, accounts: 20_000 };
  const ones = await restored(context, { commits: ONES, group: 1, ...small });
  // A server's largest segment is a part of this one.
  const many = full ? 600_000 : commits;
  const merged = await restored(context, { commits: many, merges: mergedToOne(many), ...small });
  return [
    replayRow("restore from a replica: commits replayed each second", all),
    memoryRow("restore from a replica: memory at the most, MB", all),
    replayRow("the same where each commit is a group of its own", ones),
    memoryRow("memory of that at the most, MB", ones),
    replayRow("restore where all segments were merged to one", merged),
    memoryRow("memory of that at the most, MB", merged),
  ];
}

function replayRow(name: string, restored: Restored): Row {
  const { commits, databaseBytes, segments, segmentBytesMax, seconds, processor } = restored;
  const perSecond = commits / seconds.replay;
  const database = `${commits} commits on ${
    (databaseBytes / MB).toFixed(0)
  } MB, in ${segments} segments of at most ${(segmentBytesMax / MB).toFixed(1)} MB`;
  return {
    name,
    measured: `${perSecond.toFixed(0)}/s`,
    control: `${database}; ${(commits / processor.replay).toFixed(0)} for a second of processor`,
    ratio: perSecond / 30_000,
    target: { atLeast: 1 },
    details: { seconds, processor },
  };
}

function memoryRow(name: string, { seconds, processor, peakBytes, making }: Restored): Row {
  return {
    name,
    measured: `${(peakBytes / MB).toFixed(0)} MB`,
    control: `${seconds.all.toFixed(0)} s in all: unpack ${seconds.unpack.toFixed(0)}, replay ${
      seconds.replay.toFixed(0)
    }, check ${seconds.check.toFixed(0)}; ${processor.all.toFixed(0)} s of processor`,
    ratio: peakBytes / MB,
    target: { atMost: 300 },
    details: { peakBytes, making },
  };
}

async function restored(
  context: BenchContext,
  size: Omit<RestorableOptions, "folder"> & { readonly commits: number },
): Promise<Restored> {
  const folder = context.folder();
  const madeAt = performance.now();
  const made = await makeRestorable({ folder, ...size });
  const making = (performance.now() - madeAt) / 1_000;
  const dataDir = join(folder, "restored");
  await Deno.mkdir(dataDir);
  await using child = new Child({
    args: [
      ..."run --quiet --no-prompt --no-check -P=restore".split(" "),
      HEAP,
      fileURLToPath(new URL("../support/restore_child.ts", import.meta.url)),
      made.replica,
      dataDir,
    ],
  });
  const [, reported = ""] = await child.line(/^restored (.*)$/, WAIT_MS);
  const peakBytes = await peakMemory(child.pid);
  const { commits, seconds, processor } = JSON.parse(reported);
  if (commits !== size.commits) throw new Error(`${commits} commits of ${size.commits} were restored`);
  // The next one needs the room.
  await Deno.remove(folder, { recursive: true });
  return { ...made, commits, peakBytes, making, seconds, processor };
}
