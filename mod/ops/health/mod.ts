/** Readiness of the server. */
export { Readiness, type ReadinessOptions, type ReadinessReport } from "./readiness.ts";
export { healthRoutes } from "./routes.ts";
