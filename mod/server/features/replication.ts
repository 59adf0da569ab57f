/** Replication of this server. */
import { join } from "node:path";
import { INCOMING_DIR } from "../../config/config.ts";
import { LocationError } from "../../kit/locations/object_store.ts";
import type { DocumentHistory, Replication, ReplicationPort } from "../../ops/replication/mod.ts";
import type { LocationProbe } from "../../kit/locations/location_probe.ts";
import { StartError } from "../../config/start_error.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import type { MaintenanceFeature } from "./maintenance.ts";

export interface ReplicationFeature extends Feature {
  /** Probes the target; `null` on a server that does not replicate. */
  readonly probe: () => LocationProbe | null;
  /** `null` on a server that does not replicate. */
  readonly replication:
    | ReplicationPort & Pick<Replication, "figures"> & {
      /** Reads the earlier states of a document. */
      readonly history: (id: string) => Promise<DocumentHistory>;
    }
    | null;
}

/** Does nothing without a target. Throws a `StartError` if the target contains something else or refuses access. */
export async function startReplication(
  { config: { dataDir, replication: config, storage }, url, host, log }: FeatureContext,
  { maintenance: { makeBackup } }: { readonly maintenance: MaintenanceFeature },
): Promise<ReplicationFeature> {
  if (config === null) return { replication: null, probe: () => null };
  const { historyInProcess, stageInProcess, targetProbe } = await import("../../ops/replication/mod.ts");
  const { to: target, everyMs, snapshotEveryMs, keepMs, heartbeatUrl } = config;
  const stopping = new AbortController();
  const options = {
    dataDir,
    server: url,
    target,
    everyMs,
    snapshotEveryMs,
    keepMs,
    heartbeatUrl,
    makeBackup,
    updateJournal: (message: Parameters<typeof host.updateJournal>[0]) => host.updateJournal(message),
    ts: () => host.ts,
    log,
  };
  const replication = await startOrExplain(options);
  host.commits.onGroup(() => replication.committed());
  return {
    probe: () => targetProbe(target),
    replication: {
      status: () => replication.status(),
      figures: () => replication.figures(),
      takeSnapshot: () => replication.takeSnapshot(),
      history: (id) =>
        historyInProcess({
          ...{ dataDir, target, id },
          // Only one history is read at a time.
          folder: join(dataDir, INCOMING_DIR, "history"),
          signal: stopping.signal,
        }),
      stage: (point, rebuilt) =>
        stageInProcess({
          ...rebuilt,
          dataDir,
          target,
          localFiles: storage.s3 === null,
          point,
          signal: stopping.signal,
        }),
    },
    stop: () => stopping.abort(),
    // Called when no more commits are made.
    [Symbol.asyncDispose]: () => replication[Symbol.asyncDispose](),
  };
}

async function startOrExplain(options: Parameters<typeof Replication.start>[0]): Promise<Replication> {
  const { Replication } = await import("../../ops/replication/mod.ts");
  try {
    return await Replication.start(options);
  } catch (error) {
    if (!(error instanceof LocationError)) throw error;
    throw new StartError(`Cannot replicate: ${error.message}`, { code: "replication", cause: error });
  }
}
