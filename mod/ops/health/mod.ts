/** Readiness of the server. */
export { healthRoutes, Readiness, type ReadinessOptions, type ReadinessReport } from "./readiness.ts";
