/** What administrators call and main does, by function path. */
import { z } from "zod";
import { adminMainAction, adminReadingAction, type MainAction } from "../../functions/main_actions.ts";
import { whereArgs } from "./isolate_functions/where.ts";
import { runArgs, runFunction, type RunFunctionOptions } from "./run_function.ts";
import type { TableSizes } from "./table_sizes.ts";
import type { AdminWork } from "./work.ts";

export interface AdminActionsOptions extends RunFunctionOptions {
  readonly work: AdminWork;
  readonly sizes: TableSizes;
}

export function adminActions(options: AdminActionsOptions): ReadonlyMap<string, MainAction> {
  const { work, sizes } = options;
  return new Map([
    ["_admin/data:sizes", adminReadingAction(z.strictObject({}), () => sizes.read())],
    [
      "_admin/data:deleteWhere",
      adminMainAction(z.strictObject(whereArgs), async (where, { adminId }) => ({
        workId: await work.deleteDocuments(where, adminId ?? ""),
      })),
    ],
    ["_admin/functions:run", adminMainAction(runArgs, (args) => runFunction(options, args))],
  ]);
}
