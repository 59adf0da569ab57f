/** Restores: an archive is checked and staged, and takes the place of the data while nothing is open. */
export { type AppliedRestore, applyStagedRestore, finishInterruptedRestore } from "./apply.ts";
export { cancelRestore } from "./cancel.ts";
export { BrokenMarkerError, type StagedRestore, stagedRestore } from "./marker.ts";
export { KEPT_PREFIX } from "./places.ts";
export { RestoreError, type RestoreFault } from "./restore_error.ts";
export type { StageOptions } from "./stage.ts";
export { removeAbandonedStaging } from "./tidy.ts";

/** See `stage.ts`: with what unpacks and checks archives it is loaded when it is needed. */
export const stageRestore: typeof import("./stage.ts").stageRestore = async (...args) => {
  const stage = await import("./stage.ts");
  return await stage.stageRestore(...args);
};
