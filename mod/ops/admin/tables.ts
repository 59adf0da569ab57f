/** The tables of what administrators do: long work, settings, the audit log. */
import { z } from "zod";
import {
  createSystemFunctions,
  type DataModelOf,
  defineTable,
  type DocumentOf,
  type Schema,
  type SystemMutationCtx,
  type SystemQueryCtx,
} from "../../functions/api/service.ts";
import { importModes } from "../tables/import/modes.ts";

/** Instants are milliseconds since the epoch. */
const instant = z.number();

/** What a value in the audit log may be: nothing that a document or a secret could hide in. */
const noted = z.union([z.string(), z.number(), z.boolean(), z.null()]);

export const tables = {
  /**
   * Work that takes long, so that it can be watched and left. Its life:
   *
   *     running --the last step--> done | failed
   *     running --cancel--> canceled
   *     running --the server ended--> interrupted
   */
  _admin_work: defineTable({
    kind: z.enum(["deleteDocuments", "importRows"]),
    /** What it works on. */
    table: z.string(),
    /** Of an import. */
    mode: z.enum(importModes).optional(),
    startedBy: z.string(),
    state: z.enum(["running", "done", "failed", "canceled", "interrupted"]),
    /** Documents changed so far; of an import, the rows of the file that are stored, which are its first ones. */
    changed: z.int(),
    /** Documents that an import has deleted before. */
    emptied: z.int().optional(),
    error: z.string().optional(),
    endedAt: instant.optional(),
  }).index("by_state", ["state"]),

  /** Options that administrators have set. */
  _settings: defineTable({
    /** Of the option; unique. */
    name: z.string(),
    /** As a flag would take it; missing for secrets. */
    text: z.string().optional(),
    /** A secret, sealed under the server's key, and which key that was. */
    sealed: z.string().optional(),
    key: z.string().optional(),
  }).index("by_name", ["name"]),

  /** What administrators did. */
  _audit: defineTable({
    /** The administrator; their address as it was then. */
    admin: z.string(),
    email: z.string(),
    /** Where they were: address and program of the client, as far as known. */
    address: z.string().optional(),
    userAgent: z.string().optional(),
    /** Path of the function, or method and path of the request. */
    action: z.string(),
    args: z.record(z.string(), noted),
    /** `ok`, or the code of the error. */
    outcome: z.string(),
    /** Settings that were changed; secrets are never told. */
    changes: z.array(z.strictObject({ setting: z.string(), before: z.unknown(), after: z.unknown() }))
      .optional(),
  }).index("by_admin", ["admin"]).index("by_action", ["action"]),
};

export type AdminModel = DataModelOf<Schema<typeof tables>>;
export type AdminDoc<Table extends keyof AdminModel & string> = DocumentOf<AdminModel, Table>;
export type AdminQueryCtx = SystemQueryCtx<AdminModel>;
export type AdminMutationCtx = SystemMutationCtx<AdminModel>;

/** The function builders whose `ctx.db` knows these tables. */
export const { adminQuery, adminMutation, systemQuery, systemMutation } = createSystemFunctions(
  { tables } satisfies Schema<typeof tables>,
);
