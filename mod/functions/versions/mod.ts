/** Public API of `mod/functions/versions`. */
export {
  type Deployed,
  type Deployment,
  historyOf,
  readDeployed,
  removeStaged,
  type ServedVersion,
  stageDeployed,
  writeDeployed,
} from "./deployed.ts";
export {
  FileSums,
  hashOf,
  isBelow,
  isHash,
  type Manifest,
  parseManifest,
  type VersionContent,
  type VersionFile,
} from "./manifest.ts";
export {
  bundleContent,
  type Version,
  VersionError,
  type VersionInfo,
  VersionStore,
} from "./version_store.ts";
export { BUNDLE_NAME } from "../packages/mod.ts";
