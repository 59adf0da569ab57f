/** Opens and lists a replica and chooses a restore point, for the commands `restore --from` and `replica`. */
import { LocationError } from "../kit/locations/object_store.ts";
import { ConsoleProgress, showPoint } from "./console_progress.ts";
import { locationConfig } from "../config/locations.ts";
import type { OptionValues } from "../config/options.ts";
import { StartError } from "../config/start_error.ts";
import {
  type Generation,
  listGenerations,
  openTarget,
  planRestore,
  type ReplicaReader,
  type RestorePlan,
  stagePoint,
} from "../ops/replication/mod.ts";
import { requireNetwork } from "./remote_archive.ts";

type Source = NonNullable<OptionValues["from"]>;

/** Opens a replica, or a cluster's log with its snapshots. Throws a `StartError` or a `LocationError`. */
async function openSource(options: OptionValues, from: Source): Promise<ReplicaReader> {
  if (from.kind !== "postgres") {
    const location = locationConfig(options, from);
    if (location.kind === "bucket") await requireNetwork(location.bucket);
    return await openTarget(location, { make: false });
  }
  if ((await Deno.permissions.query({ name: "net" })).state !== "granted") {
    throw new StartError(
      "Restoring from a cluster needs network permission, which this task does not have: use deno task restore:remote",
      { code: "cluster" },
    );
  }
  const { clusterSnapshots } = options;
  if (clusterSnapshots === null) {
    throw new StartError(
      "A cluster is restored from its snapshots and its log: pass the location of the snapshots with --cluster-snapshots",
      { code: "cluster" },
    );
  }
  const snapshots = locationConfig(options, clusterSnapshots);
  if (snapshots.kind === "bucket") await requireNetwork(snapshots.bucket);
  // The driver is loaded only here.
  const { openClusterReplica } = await import("../cluster/postgres/mod.ts");
  return await openClusterReplica({ address: from.address, snapshots });
}

/** Opens a replica and lists its generations. Turns errors an operator can fix into a `StartError`. */
export async function withReplica<T>(
  options: OptionValues,
  from: Source,
  run: (target: ReplicaReader, generations: readonly Generation[]) => Promise<T>,
): Promise<T> {
  try {
    await using target = await openSource(options, from);
    return await run(target, await listGenerations(target));
  } catch (error) {
    if (!(error instanceof LocationError)) throw error;
    throw new StartError(`${error.message}. Nothing has changed`, { cause: error });
  }
}

/** Formats the restorable ranges as a table or as JSON. */
export function listText(
  generations: readonly Generation[],
  { location, json }: { readonly location: string; readonly json: boolean },
): string {
  if (json) {
    const rows = generations.map(({ name, snapshots, segments, ranges }) => ({
      generation: name,
      snapshots: snapshots.map(({ ts, at, file }) => ({ ts, time: timeText(at), bytes: file.size })),
      segments: segments.length,
      bytes: [...snapshots, ...segments].reduce((sum, { file }) => sum + file.size, 0),
      ranges: ranges.map(({ fromTs, toTs, fromTime, toTime }) => ({
        fromTs,
        toTs,
        fromTime: timeText(fromTime),
        toTime: timeText(toTime),
      })),
    }));
    return JSON.stringify({ place: location, generations: rows }, null, 2);
  }
  const rows = generations.flatMap(({ name, ranges, snapshots, segments }) =>
    ranges.length === 0
      ? [[name, "-", "-", "-", "-", String(snapshots.length), String(segments.length)]]
      : ranges.map(({ fromTs, toTs, fromTime, toTime }) => [
        name,
        String(fromTs),
        String(toTs),
        timeText(fromTime),
        timeText(toTime),
        String(snapshots.length),
        String(segments.length),
      ])
  );
  if (rows.length === 0) return `Replica "${location}" is still empty.`;
  const head = ["generation", "from ts", "to ts", "from time", "to time", "snapshots", "segments"];
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0))
  );
  return [head, ...rows].map((row) =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd()
  )
    .join("\n");
}

/** Throws a `LocationError` that lists the restorable ranges if the point is in none of them. */
export function choose(
  generations: readonly Generation[],
  { options, target }: { readonly options: OptionValues; readonly target: ReplicaReader },
): RestorePlan {
  const { toTs, toTime, generation } = options;
  const point = { toTs: toTs ?? undefined, toTime: toTime ?? undefined, generation: generation ?? undefined };
  return planRestore(generations, point, { now: Date.now(), location: target.location });
}

/** Rebuilds and stages the chosen point. Returns notes about missing files. */
export async function stageChosen(
  target: ReplicaReader,
  plan: RestorePlan,
  { data }: OptionValues,
): Promise<string[]> {
  using progress = new ConsoleProgress();
  const { missingFiles, missingFilesCount } = await stagePoint(target, plan, {
    dataDir: data,
    // Without a local storage folder the files are probably in a bucket, so do not check for them.
    localFiles: await hasFiles(data),
    onProgress: (step) => showPoint(progress, step),
  });
  if (missingFilesCount === 0) return [];
  const more = missingFilesCount > missingFiles.length
    ? ` and ${missingFilesCount - missingFiles.length} more`
    : "";
  return [
    `${missingFilesCount} files referenced by documents are missing from this folder: ${
      missingFiles.join(", ")
    }${more}`,
  ];
}

async function hasFiles(dataDir: string): Promise<boolean> {
  try {
    return (await Deno.stat(`${dataDir}/storage`)).isDirectory;
  } catch {
    return false;
  }
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
