/** Deploys, environment variables and data migrations, for the server and the CLI. */
export type { Bundle } from "./bundle/pack.ts";
export { takeBundle } from "./bundle/take.ts";
export { BundleError } from "./bundle/bundle_manifest.ts";
export type { DeployChanges } from "./changes.ts";
export { type DeployedVersions, Deployments, type DeployResult, type SharedVersions } from "./deployments.ts";
export { migrationActions, MigrationRunner, MigrationSteps } from "./migrations.ts";
export { deployRoutes } from "./routes.ts";
export { Variables } from "./variables.ts";

/** See `bundle/pack.ts`, loaded on demand: of servers, only a cluster's leader packs. */
export const readBundle: typeof import("./bundle/pack.ts").readBundle = async (...args) => {
  const pack = await import("./bundle/pack.ts");
  return await pack.readBundle(...args);
};

/** Loaded on demand as well. */
export const packVersion = async (
  ...args: Parameters<typeof import("./bundle/pack.ts").packVersion>
): Promise<ReadableStream<Uint8Array>> => {
  const pack = await import("./bundle/pack.ts");
  return pack.packVersion(...args);
};
