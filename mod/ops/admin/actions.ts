/** What administrators call and main does, by function path. */
import { z } from "zod";
import { adminMainAction, type MainAction, unnotedAdminAction } from "../../functions/main_actions.ts";
import { whereArgs } from "./isolate_functions/where.ts";
import { runArgs, runFunction, type RunFunctionOptions } from "./run_function.ts";
import { setArgs, type Settings } from "./settings.ts";
import type { TableSizes } from "./table_sizes.ts";
import type { AdminWork } from "./work.ts";

export interface AdminActionsOptions extends RunFunctionOptions {
  /** `null` for a server without settings. */
  readonly settings: Settings | null;
  /** Throws why it could not be sent. */
  readonly sendTestMail: (to: string) => Promise<void>;
  readonly work: AdminWork;
  readonly sizes: TableSizes;
}

export function adminActions(options: AdminActionsOptions): ReadonlyMap<string, MainAction> {
  const { work, sizes, settings } = options;
  return new Map([
    ...settings === null ? [] : [
      [
        "_admin/settings:set",
        unnotedAdminAction(setArgs, ({ changes }, identity) => settings.set(changes, identity)),
      ] as const,
    ],
    ["_admin/data:sizes", unnotedAdminAction(z.strictObject({}), () => sizes.read())],
    [
      "_admin/data:deleteWhere",
      adminMainAction(z.strictObject(whereArgs), async (where, { adminId }) => ({
        workId: await work.deleteDocuments(where, adminId ?? ""),
      })),
    ],
    [
      "_admin/settings:testMail",
      adminMainAction(z.strictObject({ to: z.string() }), async ({ to }) => {
        await options.sendTestMail(to);
        return null;
      }),
    ],
    ["_admin/functions:run", adminMainAction(runArgs, (args) => runFunction(options, args))],
  ]);
}
