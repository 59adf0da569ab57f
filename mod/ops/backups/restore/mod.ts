/** Restores: an archive is verified and staged, and replaces the data at the next start. */
export {
  type AppliedRestore,
  applyStagedRestore,
  finishInterruptedRestore,
  removeAbandonedStaging,
} from "./apply.ts";
export { cancelRestore } from "./cancel.ts";
export {
  BrokenMarkerError,
  KEPT_PREFIX,
  RestoreError,
  type RestoreFailureCause,
  stagedDatabase,
  type StagedRestore,
  stagedRestore,
} from "./marker.ts";
export type { StagedArchive, StageOptions } from "./stage.ts";

/** See `stage.ts`, which is loaded on demand. */
export const stageRestore: typeof import("./stage.ts").stageRestore = async (...args) => {
  const stage = await import("./stage.ts");
  return await stage.stageRestore(...args);
};
