/** System functions of operations, by the paths under which they are called. */
import type { SystemModule } from "../../functions/system_module.ts";
import { clean, list as listAudit, note, recordMutation } from "../admin/isolate_functions/audit.ts";
import * as data from "../admin/isolate_functions/data.ts";
import {
  accountExists,
  argsSchemas,
  list as listFunctions,
  schema,
  sizes,
  spaces,
  watch,
} from "../admin/isolate_functions/functions.ts";
import {
  change,
  configureSettings,
  environment,
  list as listSettings,
  rows,
} from "../admin/isolate_functions/settings.ts";
import { choices, labels } from "../admin/isolate_functions/references.ts";
import * as views from "../admin/isolate_functions/views.ts";
import * as work from "../admin/isolate_functions/work.ts";
import { settingsFeature, tables } from "../admin/tables.ts";
import { alertFunctions, alertSystemFunctions, tables as alertTables } from "../alerts/isolate_functions.ts";
import { deployModules } from "../deploy/isolate_functions/mod.ts";
import { healthFunctions, tables as healthTables } from "../health/isolate_functions.ts";
import { check, empty, write } from "./import.ts";

/** Called by the server only, at `_system/import:<name>`. */
export const importFunctions = { check, empty, write };

/** Called by the server only, at `_system/admin:<name>`. */
export const adminSystemFunctions = {
  accountExists,
  argsSchemas,
  beginDelete: work.beginDelete,
  beginImport: work.beginImport,
  changeSettings: change,
  checkReadableId: data.checkReadableId,
  cleanAudit: clean,
  cleanViews: views.clean,
  deleteStep: work.deleteStep,
  endImport: work.endImport,
  failWork: work.fail,
  interruptWork: work.interrupt,
  note,
  settingRows: rows,
  sizes,
  spaces,
};

/** Called by administrators, at `_admin/data:<name>`. */
export const dataFunctions = {
  choices,
  count: data.count,
  documents: data.documents,
  get: data.get,
  insert: data.insert,
  labels,
  patch: data.patch,
  patchMany: data.patchMany,
  position: data.position,
  remove: data.remove,
  replace: data.replace,
  tableOf: data.tableOf,
  tables: data.tables,
};

/** Called by administrators, at `_admin/work:<name>`. */
export const workFunctions = {
  cancel: work.cancel,
  forget: work.forget,
  get: work.get,
  list: work.list,
};

/** Called by administrators, at `_admin/views:<name>`. */
export const viewFunctions = {
  list: views.list,
  remove: views.remove,
  save: views.save,
  saveQuery: views.saveQuery,
};

export const opsModules: readonly SystemModule[] = [
  { path: "_system/import", tables: {}, functions: importFunctions },
  { path: "_system/health", tables: healthTables, functions: healthFunctions },
  {
    path: "_system/admin",
    tables,
    functions: adminSystemFunctions,
    notes: recordMutation as never,
    settings: { name: settingsFeature, configure: configureSettings },
  },
  { path: "_admin/data", tables: {}, functions: dataFunctions },
  { path: "_admin/schema", tables: {}, functions: { get: schema } },
  { path: "_admin/functions", tables: {}, functions: { list: listFunctions, watch } },
  { path: "_admin/views", tables: {}, functions: viewFunctions },
  { path: "_admin/work", tables: {}, functions: workFunctions },
  { path: "_admin/settings", tables: {}, functions: { environment, list: listSettings } },
  { path: "_admin/audit", tables: {}, functions: { list: listAudit } },
  { path: "_system/alerts", tables: alertTables, functions: alertSystemFunctions },
  { path: "_admin/alerts", tables: {}, functions: alertFunctions },
  ...deployModules,
];
