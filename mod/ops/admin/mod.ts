/** Admin functions, settings and audit log. */
export { consoleAction } from "./query_console.ts";
export { type ActiveProviders, adminActions, type AdminActionsOptions, TableSizes } from "./actions.ts";
export { AUDIT_CLEAN_PATH, type AuditEntry, AuditLog, type AuditRequests } from "./audit_log.ts";
export { type SettingFacts, Settings, type SettingsOptions } from "./settings.ts";
export { settingsFeature } from "./tables.ts";
export { decryptSecret, keyName } from "../../kit/secret_encryption.ts";
export { AdminWork } from "./work.ts";
export { documentHistoryAction } from "./document_history.ts";
