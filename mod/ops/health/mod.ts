/** Whether the server does its work. */
export { Readiness, type ReadinessOptions, type ReadinessReport } from "./readiness.ts";
export { healthRoutes } from "./routes.ts";
