/** Migrations as administrators and the command line drive them: one step a call, so that whoever asks sees how far it is. */
import { z } from "zod";
import { UserError } from "../../errors.ts";
import { adminMainAction, type MainAction, unnotedAdminAction } from "../../functions/main_actions.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import { deployLimits } from "../limits.ts";
import { TRIED } from "./isolate_functions/migrations.ts";
import { system } from "./system.ts";

const place = { path: z.string(), table: z.string() };

/** Steps grow and shrink with how long the last one took. */
const FIRST_ROWS = 16;

/** What is refused whatever the number of documents. */
const NEVER_GOES = new Set(["migration_not_found", "unknown_function", "unknown_table"]);

/** The actions of migrations, by path. */
export function migrationActions(
  { calls, now }: { readonly calls: SystemCalls; readonly now: () => number },
): ReadonlyMap<string, MainAction> {
  return new Map([
    [
      "_admin/migrations:begin",
      adminMainAction(
        z.strictObject({ ...place, anew: z.boolean().default(false) }),
        (args) => calls.mutate(system.beginMigration, args),
      ),
    ],
    [
      "_admin/migrations:step",
      unnotedAdminAction(
        z.strictObject({
          migrationId: z.string(),
          rows: z.int().min(1).max(deployLimits.migrationStepRowsMax).default(FIRST_ROWS),
        }),
        async ({ migrationId, rows: wanted }) => {
          for (let rows = wanted;; rows = Math.floor(rows / 2)) {
            const since = now();
            try {
              const step = await calls.mutate(system.migrationStep, {
                migrationId: migrationId as never,
                rows,
              });
              return { ...step, rows: nextRows(rows, now() - since) };
            } catch (error) {
              if (rows === 1 || !mayBeTooMuch(error)) throw error;
            }
          }
        },
      ),
    ],
    ["_admin/migrations:tryOut", unnotedAdminAction(z.strictObject(place), (args) => tryOut(calls, args))],
  ]);
}

/** Whether fewer documents may go through: a step has the limits of one mutation. */
function mayBeTooMuch(error: unknown): boolean {
  return !(error instanceof UserError) || !NEVER_GOES.has(error.code);
}

/** How many documents the next step takes. */
function nextRows(rows: number, ms: number): number {
  const aimed = Math.floor(rows * deployLimits.migrationStepMsAimed / Math.max(1, ms));
  return Math.max(1, Math.min(aimed, 2 * rows, deployLimits.migrationStepRowsMax));
}

async function tryOut(
  calls: SystemCalls,
  args: { readonly path: string; readonly table: string },
): Promise<unknown> {
  try {
    return await calls.mutate(system.tryMigration, { ...args, rows: deployLimits.migrationSampleMax });
  } catch (error) {
    if (error instanceof UserError && error.code === TRIED) return error.data;
    throw error;
  }
}
