/** Tables of environment variables and migrations. */
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

/** Code of the error that a successful dry run throws to roll back its writes. */
export const DRY_RUN_DONE = "migration_tried";

const instant = z.number();

export const tables = {
  /** Environment variables of actions (`ctx.env`). */
  _env: defineTable({
    /** Unique. */
    name: z.string(),
    /** Encrypted value, and identifier of the encryption key. */
    sealed: z.string(),
    key: z.string(),
  }).index("by_name", ["name"]),

  /**
   * Data migrations of tables. States:
   *
   *     running --the last step--> done
   *     running --restarted--> (deleted)
   *
   * Clients drive it in steps; with `onServer` the server does, also after a restart.
   */
  _migrations: defineTable({
    /** Internal mutation that runs for each document. */
    path: z.string(),
    table: z.string(),
    /** Creation time up to which documents are migrated: newer ones are written by the new code. */
    until: instant,
    /** Key of the last migrated document; missing before the first step. */
    cursor: z.string().optional(),
    documents: z.int(),
    state: z.enum(["running", "done"]),
    endedAt: instant.optional(),
    /** Set if the server runs it. */
    onServer: z.boolean().optional(),
    /** Why the server stopped it. */
    error: z.string().optional(),
  }).index("by_path", ["path", "table"]).index("by_on_server", ["onServer"]),
};

export type DeployModel = DataModelOf<Schema<typeof tables>>;
export type DeployDoc<Table extends keyof DeployModel & string> = DocumentOf<DeployModel, Table>;
export type DeployQueryCtx = SystemQueryCtx<DeployModel>;
export type DeployMutationCtx = SystemMutationCtx<DeployModel>;

/** Function builders typed with these tables. */
export const { adminQuery, adminMutation, systemQuery, systemMutation } = createSystemFunctions(
  { tables } satisfies Schema<typeof tables>,
);
