/** Exports a table of a database that is built for one request and removed afterwards. Nothing is staged. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Context } from "hono";
import { removeIfThere } from "../../../kit/durable_files.ts";
import type { AdminEnv } from "../../admin/admin_guard.ts";

/** Answers with a table of a database, which is removed by `onEnd`. */
export type ExportRebuilt = (
  c: Context<AdminEnv>,
  rebuilt: { readonly table: string; readonly path: string; readonly onEnd: () => void },
) => Promise<Response>;

export interface RebuiltTableOptions {
  readonly exportRebuilt: ExportRebuilt;
  /** Folder for the databases, which is emptied at start. */
  readonly incomingDir: string;
  /** Writes the database to a path that does not exist. */
  readonly build: (databaseTo: string) => Promise<unknown>;
}

/** Answers with the table that the path of a request names. The administrator must still have access after the build. */
export async function exportRebuiltTable(
  c: Context<AdminEnv>,
  { exportRebuilt, incomingDir, build }: RebuiltTableOptions,
): Promise<Response> {
  const folder = join(incomingDir, `rebuilt-${randomBytes(8).toString("hex")}`);
  const path = join(folder, "data.db");
  // A leftover is removed at the next start.
  const onEnd = () => void removeIfThere(folder).catch(() => {});
  try {
    await Deno.mkdir(folder, { mode: 0o700 });
    await build(path);
    await c.get("confirmAccess")();
    return await exportRebuilt(c, { table: c.req.param("table") ?? "", path, onEnd });
  } catch (error) {
    onEnd();
    throw error;
  }
}
