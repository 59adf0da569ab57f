/** Deploying functions to a running server, its keys, variables of `ctx.env`, migrations: what the server and the commands use. */
export { type Bundle, packVersion, readBundle } from "./bundle/pack.ts";
export { takeBundle } from "./bundle/take.ts";
export { BundleError } from "./bundle/bundle_error.ts";
export type { DeployChanges } from "./changes.ts";
export { DeployKeys } from "./deploy_keys.ts";
export { type DeployedVersion, Deployments, type DeployResult, type SharedVersions } from "./deployments.ts";
export { MigrationRunner } from "./migration_runner.ts";
export { migrationActions } from "./migrations.ts";
export { MigrationSteps } from "./migration_steps.ts";
export { deployRoutes } from "./routes.ts";
export { Variables } from "./variables.ts";
