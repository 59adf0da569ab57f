/** Restores from a replica: commits replayed per second, peak memory, and duration. */
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import type { BenchContext } from "../context.ts";
import { Child } from "../../tests/support/processes/child.ts";
import { peakMemory } from "../../tests/support/processes/process_tree.ts";
import { createReplica, mergeIntoOne, type Replica, type ReplicaOptions } from "../support/replica.ts";
import type { Row } from "../table.ts";

const MB = 1_000_000;
const RESTORE_MS_MAX = 30 * 60_000;
const SINGLE_COMMIT_GROUPS = 50_000;
/** The options of the command. */
const HEAP = "--v8-flags=--max-old-space-size=256,--max-semi-space-size=4";

type Durations = Record<"unpack" | "replay" | "check" | "all", number>;

interface Restored extends Replica {
  readonly commits: number;
  readonly peakBytes: number;
  /** Seconds by the clock. */
  readonly seconds: Durations;
  /** Seconds of processor time of all threads. */
  readonly processor: Durations;
}

export async function restoreRows(context: BenchContext): Promise<Row[]> {
  const { full } = context;
  const commits = full ? 1_000_000 : 100_000;
  const small = { notes: 50_000, accounts: 20_000 };
  const all = await restore(context, {
    commits,
    ...(full ? { notes: 950_000, accounts: 200_000 } : small),
  });
  const single = await restore(context, { commits: SINGLE_COMMIT_GROUPS, groupSize: 1, ...small });
  // Larger than the largest segment of a server.
  const mergedCommits = full ? 600_000 : commits;
  const merged = await restore(context, {
    ...{ commits: mergedCommits, merges: mergeIntoOne(mergedCommits), ...small },
  });
  return [
    replayRow("restore: commits replayed per second", all),
    memoryRow("restore: peak memory, MB", all),
    replayRow("restore of single-commit groups: commits per second", single),
    memoryRow("restore of single-commit groups: peak memory, MB", single),
    replayRow("restore of one merged segment: commits per second", merged),
    memoryRow("restore of one merged segment: peak memory, MB", merged),
  ];
}

function replayRow(name: string, restored: Restored): Row {
  const { commits, databaseBytes, segments, segmentBytesMax, seconds, processor } = restored;
  const perSecond = commits / seconds.replay;
  const megabytes = (bytes: number, digits: number) => `${(bytes / MB).toFixed(digits)} MB`;
  const segmentSizes = `${segments} segments of at most ${megabytes(segmentBytesMax, 1)}`;
  return {
    name,
    measured: `${perSecond.toFixed(0)}/s`,
    control: `${commits} commits on ${megabytes(databaseBytes, 0)}, in ${segmentSizes}; ` +
      `${(commits / processor.replay).toFixed(0)} per second of processor time`,
    ratio: perSecond / 30_000,
    target: { atLeast: 1 },
    details: { seconds, processor },
  };
}

function memoryRow(name: string, { seconds, processor, peakBytes }: Restored): Row {
  const steps = (["unpack", "replay", "check"] as const)
    .map((step) => `${step} ${seconds[step].toFixed(0)}`).join(", ");
  return {
    name,
    measured: `${(peakBytes / MB).toFixed(0)} MB`,
    control: `${seconds.all.toFixed(0)} s: ${steps}; ${processor.all.toFixed(0)} s of processor time`,
    ratio: peakBytes / MB,
    target: { atMost: 300 },
    details: { peakBytes },
  };
}

async function restore(context: BenchContext, options: Omit<ReplicaOptions, "folder">): Promise<Restored> {
  const folder = context.folder();
  const replica = await createReplica({ folder, ...options });
  const dataDir = join(folder, "restored");
  await Deno.mkdir(dataDir);
  await using child = new Child({
    args: [
      ..."run --quiet --no-prompt --no-check -P=restore".split(" "),
      HEAP,
      fileURLToPath(new URL("../support/restore_child.ts", import.meta.url)),
      replica.path,
      dataDir,
    ],
  });
  const [, reported = ""] = await child.line(/^restored (.*)$/, RESTORE_MS_MAX);
  const peakBytes = await peakMemory(child.pid);
  const { commits, seconds, processor } = JSON.parse(reported);
  if (commits !== options.commits) throw new Error(`${commits} of ${options.commits} commits were restored`);
  // Frees disk space for the next one.
  await Deno.remove(folder, { recursive: true });
  return { ...replica, commits, peakBytes, seconds, processor };
}
