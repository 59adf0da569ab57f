/** Tables of background tasks, settings, saved views and the audit log. */
import { z } from "zod";
import {
  createSystemFunctions,
  type DataModelOf,
  defineTable,
  type DocumentOf,
  type Schema,
  type SystemMutationCtx,
} from "../../functions/api/service.ts";
import { importModes } from "../tables/mod.ts";

/** Key of the settings passed to isolates. */
export const settingsFeature = "settings";

const instant = z.number();

/** Values in the audit log: scalars only, so that they cannot contain documents or secrets. */
const noted = z.union([z.string(), z.number(), z.boolean(), z.null()]);

export const tables = {
  /**
   * Background tasks. States:
   *
   *     running --the last step--> done | failed
   *     running --cancel--> canceled
   *     running --the server ended--> interrupted
   */
  _admin_work: defineTable({
    kind: z.enum(["deleteDocuments", "importRows"]),
    /** Table that the task works on. */
    table: z.string(),
    mode: z.enum(importModes).optional(),
    startedBy: z.string(),
    state: z.enum(["running", "done", "failed", "canceled", "interrupted"]),
    /** Number of changed documents. For imports, the number of stored rows, which are the first ones of the file. */
    changed: z.int(),
    /** Number of documents deleted by an import before inserting. */
    emptied: z.int().optional(),
    error: z.string().optional(),
    endedAt: instant.optional(),
  }).index("by_state", ["state"]),

  /** Options set by administrators. */
  _settings: defineTable({
    /** Name of the option; unique. */
    name: z.string(),
    /** In the format of the flag. Missing for secrets, except for what is shown of them. */
    text: z.string().optional(),
    /** Encrypted secret, and identifier of the key. */
    sealed: z.string().optional(),
    key: z.string().optional(),
  }).index("by_name", ["name"]),

  /** Saved views of tables, and saved queries of the console (`isolate_functions/views.ts`). */
  _admin_views: defineTable({
    admin: z.string(),
    /** Empty for a query of the console. */
    table: z.string(),
    /** Empty for the columns as arranged last. */
    name: z.string(),
    filters: z.string(),
    hidden: z.array(z.string()),
    widths: z.record(z.string(), z.int()),
    frozen: z.int(),
    /** Source of a query of the console. */
    query: z.string().optional(),
  }).index("by_admin", ["admin", "table", "name"]),

  _audit: defineTable({
    /** The administrator, and their email address at that time. */
    admin: z.string(),
    email: z.string(),
    /** Client address and user agent, if known. */
    address: z.string().optional(),
    userAgent: z.string().optional(),
    /** Function path, or method and path of the request. */
    action: z.string(),
    args: z.record(z.string(), noted),
    /** `ok`, or the error code. */
    outcome: z.string(),
    /** Changed settings, without secrets. */
    changes: z.array(z.strictObject({ setting: z.string(), before: z.unknown(), after: z.unknown() }))
      .optional(),
  }).index("by_admin", ["admin"]).index("by_action", ["action"]),
};

export type AdminModel = DataModelOf<Schema<typeof tables>>;
export type AdminDoc<Table extends keyof AdminModel & string> = DocumentOf<AdminModel, Table>;
export type AdminMutationCtx = SystemMutationCtx<AdminModel>;

export const { adminQuery, adminMutation, systemQuery, systemMutation } = createSystemFunctions(
  { tables } satisfies Schema<typeof tables>,
);
