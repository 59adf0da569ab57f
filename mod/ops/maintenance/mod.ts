/** Heavy jobs in a child process: backups, and verifying archives to be restored. */
export { Maintenance, type MaintenanceOptions } from "./maintenance.ts";
