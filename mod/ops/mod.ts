/** What the server wires up of operations; backups, tables and metrics have doors of their own. */
export { type AdminEnv, adminGuard, type VerifyToken } from "./admin/admin_guard.ts";
export { adminRoutes, type AdminRoutesOptions } from "./routes.ts";
export { emptyFolder } from "./spooled_body.ts";
export type { Progress } from "./progress.ts";
