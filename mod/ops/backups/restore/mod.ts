/** Restores: an archive is checked and staged, and takes the place of the data while nothing is open. */
export { type AppliedRestore, applyStagedRestore, finishInterruptedRestore } from "./apply.ts";
export { cancelRestore } from "./cancel.ts";
export { BrokenMarkerError, type StagedRestore } from "./marker.ts";
export { KEPT_PREFIX } from "./places.ts";
export { RestoreError, type RestoreFault } from "./restore_error.ts";
export { stagedRestore, type StageOptions, stageRestore } from "./stage.ts";
export { removeAbandonedStaging } from "./tidy.ts";
