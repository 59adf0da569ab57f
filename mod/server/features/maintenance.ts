/** The process that packs, unpacks and checks archives, for all who need one. */
import type { MakeBackup } from "../../ops/backups/mod.ts";
import { Maintenance } from "../../ops/maintenance/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";

export interface MaintenanceFeature extends Feature {
  /** Makes a backup in the data folder, outside of this process. */
  readonly makeBackup: MakeBackup;
  readonly stage: Maintenance["stage"];
}

/** When the server stops, a backup or a check that is under way ends. */
export function startMaintenance({ config: { dataDir }, log }: FeatureContext): MaintenanceFeature {
  const maintenance = new Maintenance({ dataDir, log });
  return {
    // It makes the backups of the schedule, which would be waited for.
    leads: true,
    makeBackup: (options) => maintenance.backup(options),
    stage: (options) => maintenance.stage(options),
    stop: () => maintenance[Symbol.asyncDispose](),
  };
}
