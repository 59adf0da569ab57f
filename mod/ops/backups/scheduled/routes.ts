/** HTTP routes of scheduled backups: list, download, test of the target. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Hono } from "hono";
import { ServiceError } from "../../../errors.ts";
import { isDiskFull, removeIfThere } from "../../../kit/durable_files.ts";
import type { AdminEnv } from "../../admin/admin_guard.ts";
import { opsLimits } from "../../limits.ts";
import { noSuchBackup } from "../routes.ts";
import { type BackupTarget, scheduledAt } from "./backup_target.ts";

export interface ScheduledRoutesOptions {
  /** Returns the current target; `null` without a schedule. */
  readonly target: () => BackupTarget | null;
  /** Folder of archives in transit. */
  readonly incomingDir: string;
}

export function scheduledRoutes({ target, incomingDir }: ScheduledRoutesOptions): Hono<AdminEnv> {
  const app = new Hono<AdminEnv>();
  app.get("/scheduled-backups", async (c) => {
    const place = target();
    if (place === null) return c.json({ place: null });
    try {
      return c.json({ place: place.location, backups: newestFirst(await place.list()) });
    } catch (error) {
      return c.json({ place: place.location, backups: [], error: reasonOf(error) });
    }
  });
  app.post("/scheduled-backups/check", async (c) => {
    const place = target();
    if (place === null) throw new ServiceError("not_found", "Scheduled backups are off");
    const error = await place.check().then(() => null, reasonOf);
    return c.json({ place: place.location, error });
  });
  app.get("/scheduled-backups/:name", async (c) => {
    const name = c.req.param("name");
    await using archive = await fetchScheduled(target(), { name, incomingDir });
    // The file is unlinked after this response starts, and its contents freed once they were read.
    const file = await Deno.open(archive.path);
    const headers = {
      "Content-Type": "application/zstd",
      "Content-Length": String((await file.stat()).size),
      "Content-Disposition": `attachment; filename="${name}"`,
    };
    if (c.req.method === "GET") return c.body(file.readable, 200, headers);
    file.close();
    return c.body(null, 200, headers);
  });
  return app;
}

/** A fetched archive. Disposing of it removes the file. */
export interface FetchedArchive extends AsyncDisposable {
  readonly path: string;
}

/** Fetches a backup. Throws `not_found`, `backup_failed` if the transfer fails, and `disk_full`. */
export async function fetchScheduled(
  target: BackupTarget | null,
  { name, incomingDir }: { readonly name: string; readonly incomingDir: string },
): Promise<FetchedArchive> {
  const path = join(incomingDir, `scheduled-${randomBytes(8).toString("hex")}`);
  let found: boolean;
  try {
    found = scheduledAt(name) !== null && await target?.fetch(name, path) === true;
  } catch (error) {
    const code = isDiskFull(error) ? "disk_full" : "backup_failed";
    throw new ServiceError(code, `Cannot fetch the backup: ${reasonOf(error)}`, { cause: error });
  }
  if (!found) throw noSuchBackup();
  return { path, [Symbol.asyncDispose]: () => removeIfThere(path) };
}

function newestFirst(names: readonly string[]): { readonly name: string; readonly createdAt: string }[] {
  return names.toSorted().reverse().slice(0, opsLimits.scheduledBackupsMax).map((name) => ({
    name,
    createdAt: new Date(scheduledAt(name) ?? 0).toISOString(),
  }));
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
