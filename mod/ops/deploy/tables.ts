/** The tables of deploying: deploy keys, variables of `ctx.env`, migrations under way. */
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

/** Instants are milliseconds since the epoch. */
const instant = z.number();

export const tables = {
  /** Keys that may deploy and nothing else. */
  _deploy_keys: defineTable({
    name: z.string(),
    /** Keyed hash of the key, which is shown once and kept nowhere. */
    hash: z.string(),
    createdBy: z.string(),
    lastUsedAt: instant.optional(),
    revokedAt: instant.optional(),
  }).index("by_hash", ["hash"]),

  /** Variables that actions see as `ctx.env`. */
  _env: defineTable({
    /** Unique. */
    name: z.string(),
    /** The value, sealed under the server's key, and which key that was. */
    sealed: z.string(),
    key: z.string(),
  }).index("by_name", ["name"]),

  /**
   * Migrations of tables, document by document. Its life:
   *
   *     running --the last step--> done
   *     running --begun anew--> (deleted)
   *
   * While it runs, whoever steps it drives it; with `onServer` the server does, also after a restart.
   */
  _migrations: defineTable({
    /** The internal mutation that is run for each document. */
    path: z.string(),
    table: z.string(),
    /** Documents that were there when it began: later ones are written by the new code. */
    until: instant,
    /** Key of the document done last; missing before the first step. */
    cursor: z.string().optional(),
    documents: z.int(),
    state: z.enum(["running", "done"]),
    endedAt: instant.optional(),
    /** Missing unless the server goes on with it by itself. */
    onServer: z.boolean().optional(),
    /** Why the server stopped; missing where it did not. */
    error: z.string().optional(),
  }).index("by_path", ["path", "table"]).index("by_on_server", ["onServer"]),
};

export type DeployModel = DataModelOf<Schema<typeof tables>>;
export type DeployDoc<Table extends keyof DeployModel & string> = DocumentOf<DeployModel, Table>;
export type DeployQueryCtx = SystemQueryCtx<DeployModel>;
export type DeployMutationCtx = SystemMutationCtx<DeployModel>;

/** The function builders whose `ctx.db` knows these tables. */
export const { adminQuery, adminMutation, systemQuery, systemMutation } = createSystemFunctions(
  { tables } satisfies Schema<typeof tables>,
);
