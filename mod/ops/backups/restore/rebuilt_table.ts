/** Exports a table of a database that is built for one request and removed afterwards. Nothing is staged. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Context } from "hono";
import { removeIfThere } from "../../../kit/durable_files.ts";
import type { AdminEnv } from "../../admin/admin_guard.ts";

/** Exports a table of a temporary database, which `build` creates and `onEnd` removes. */
export type ExportRebuilt = (
  c: Context<AdminEnv>,
  rebuilt: {
    readonly table: string;
    readonly build: () => Promise<string>;
    readonly onEnd: () => void;
  },
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
  return await exportRebuilt(c, {
    table: c.req.param("table") ?? "",
    async build() {
      const path = join(folder, "data.db");
      await Deno.mkdir(folder, { mode: 0o700 });
      await build(path);
      await c.get("confirmAccess")();
      return path;
    },
    // A leftover is removed at the next start.
    onEnd: () => void removeIfThere(folder).catch(() => {}),
  });
}
