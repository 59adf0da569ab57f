/** Admin operations, as the server wires them. Backups, tables and metrics have their own `mod.ts`. */
export { type AdminEnv, adminGuard, type VerifyToken } from "./admin/admin_guard.ts";
export { adminRoutes, type AdminRoutesOptions } from "./routes.ts";
export { emptyFolder } from "./spooled_body.ts";
export type { Progress } from "./progress.ts";
