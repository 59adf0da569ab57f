/** The process that creates, unpacks and checks archives. */
import type { MakeBackup } from "../../ops/backups/mod.ts";
import { Maintenance } from "../../ops/maintenance/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";

export interface MaintenanceFeature extends Feature {
  /** Makes a backup in the data folder, in a separate process. */
  readonly makeBackup: MakeBackup;
  readonly stage: Maintenance["stage"];
}

/** A backup or check in progress is aborted when the server stops. */
export function startMaintenance({ config: { dataDir }, log }: FeatureContext): MaintenanceFeature {
  const maintenance = new Maintenance({ dataDir, log });
  return {
    // It makes scheduled backups, which would delay the end otherwise.
    makeBackup: (options) => maintenance.backup(options),
    stage: (options) => maintenance.stage(options),
    stop: () => maintenance[Symbol.asyncDispose](),
  };
}
