/** The server's heavy work, in a process of its own: backups, and checking archives that are to be restored. */
export { Maintenance, type MaintenanceOptions } from "./maintenance.ts";
