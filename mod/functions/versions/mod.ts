/** Public API of `mod/functions/versions`. */
export { ContentReader } from "./content.ts";
export {
  type Deployed,
  type Deployment,
  readDeployed,
  removeStaged,
  stageDeployed,
  writeDeployed,
} from "./deployed.ts";
export {
  hashOf,
  isBelow,
  isHash,
  type Manifest,
  parseManifest,
  type VersionContent,
  type VersionFile,
} from "./manifest.ts";
export { FileSums } from "./file_sums.ts";
export { sameOnSomeDisks, slashed } from "../packages/slashed_paths.ts";
export { checkForeignCode } from "./foreign_code.ts";
export { type Version, VersionError, type VersionInfo, VersionStore } from "./version_store.ts";
