/** Admin functions, settings and audit log. */
export { adminActions, type AdminActionsOptions } from "./actions.ts";
export { AUDIT_CLEAN_PATH, type AuditEntry, AuditLog } from "./audit_log.ts";
export type { AuditRequests } from "./audit_requests.ts";
export { type SettingFacts, Settings, type SettingsOptions } from "./settings.ts";
export { settingsFeature } from "./settings_name.ts";
export { decryptSecret, keyName } from "./sealed_text.ts";
export { TableSizes } from "./table_sizes.ts";
export { AdminWork } from "./work.ts";
