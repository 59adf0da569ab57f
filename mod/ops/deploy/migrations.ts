/** Actions of migrations, for administrators and the CLI: run on the server, or take one step per call. */
import { z } from "zod";
import { UserError } from "../../errors.ts";
import { adminMainAction, type MainAction, unauditedAdminAction } from "../../functions/main_actions.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import { deployLimits } from "../limits.ts";
import type { MigrationRunner } from "./migration_runner.ts";
import type { MigrationSteps } from "./migration_steps.ts";
import { system } from "./system.ts";
import { DRY_RUN_DONE } from "./tried.ts";

const target = { path: z.string(), table: z.string() };
/** `anew`: the former name of `fromStart`, which older commands send. */
const beginArgs = z.strictObject({
  ...target,
  fromStart: z.boolean().optional(),
  anew: z.boolean().default(false),
})
  .transform(({ anew, fromStart = anew, ...rest }) => ({ ...rest, fromStart }));

export interface MigrationActionsOptions {
  readonly calls: SystemCalls;
  readonly steps: MigrationSteps;
  readonly runner: MigrationRunner;
}

export function migrationActions(
  { calls, steps, runner }: MigrationActionsOptions,
): ReadonlyMap<string, MainAction> {
  return new Map([
    [
      "_admin/migrations:begin",
      adminMainAction(beginArgs, (args) => calls.mutate(system.beginMigration, { ...args, onServer: false })),
    ],
    [
      "_admin/migrations:run",
      adminMainAction(beginArgs, async (args) => {
        const migration = await calls.mutate(system.beginMigration, { ...args, onServer: true });
        runner.run(migration.migrationId);
        return migration;
      }),
    ],
    [
      "_admin/migrations:step",
      unauditedAdminAction(
        z.strictObject({
          migrationId: z.string(),
          rows: z.int().min(1).max(deployLimits.migrationStepRowsMax).optional(),
        }),
        async (call) => {
          const { documents, done, rows } = await steps.take(call);
          return { documents, done, rows };
        },
      ),
    ],
    ["_admin/migrations:tryOut", unauditedAdminAction(z.strictObject(target), (args) => tryOut(calls, args))],
  ]);
}

async function tryOut(
  calls: SystemCalls,
  args: { readonly path: string; readonly table: string },
): Promise<unknown> {
  try {
    return await calls.mutate(system.tryMigration, { ...args, rows: deployLimits.migrationSampleMax });
  } catch (error) {
    if (error instanceof UserError && error.code === DRY_RUN_DONE) return error.data;
    throw error;
  }
}
