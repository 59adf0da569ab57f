/** HTTP routes of restores: stage a backup of this server or an uploaded archive, show it, cancel it; export one of its tables. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { type Context, Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../../../errors.ts";
import type { Log } from "../../../kit/log.ts";
import { opsLimits } from "../../limits.ts";
import type { BackupFolder } from "../backup_folder.ts";
import { noSuchBackup } from "../routes.ts";
import type { BackupTarget } from "../scheduled/backup_target.ts";
import { fetchScheduled } from "../scheduled/routes.ts";
import { RestoreError, type StagedArchive, type StagedRestore } from "./mod.ts";
import { type ExportRebuilt, exportRebuiltTable } from "./rebuilt_table.ts";
import { spoolBody } from "../../spooled_body.ts";
import type { AdminEnv } from "../../admin/admin_guard.ts";

/** Stages, returns and cancels restores. */
export interface RestorePort {
  /** Verifies an archive completely and stages it, unless `checkOnly` is set; `source` is its display name. */
  stage(options: StagedArchive): Promise<StagedRestore>;
  /** `null` if nothing is staged. */
  staged(): Promise<StagedRestore | null>;
  /** Returns whether something was canceled: with `stagedAt`, only the restore staged at that time. */
  cancel(stagedAt?: string): Promise<boolean>;
}

export interface RestoreRoutesOptions {
  readonly restores: RestorePort;
  readonly folder: BackupFolder;
  /** Target of scheduled backups; `null` without a schedule. */
  readonly target: () => BackupTarget | null;
  /** Without it, tables of backups are not exported. */
  readonly exportRebuilt?: ExportRebuilt | undefined;
  /** Folder of request bodies being received. */
  readonly incomingDir: string;
  readonly log: Log;
}

const sourceSchema = z.string().min(1).max(opsLimits.archiveSourceCharsMax).regex(/^\P{Cc}+$/u);

export function restoreRoutes(
  { restores, folder, target, exportRebuilt, incomingDir, log }: RestoreRoutesOptions,
): Hono<AdminEnv> {
  const app = new Hono<AdminEnv>();
  /** Whether an archive is being received, or unpacked for one of its tables. */
  let receiving = false;
  let cancelling: Promise<boolean> | null = null;

  /** @param databaseTo Path for the verified database, which is removed by default. */
  const check = async (archive: string, source: string, databaseTo?: string) => {
    try {
      const { createdAt, ts, tables, documents } = await restores.stage({
        archive,
        source,
        checkOnly: true,
        ...(databaseTo !== undefined && { databaseTo }),
      });
      return { createdAt, ts, tables, documents };
    } catch (error) {
      throw stagingError(error, log);
    }
  };
  const stage = async (archive: string, { source, c }: { source: string; c: Context<AdminEnv> }) => {
    const adminId = c.get("adminId");
    try {
      const restore = await stagedFor(c, restores, () => restores.stage({ archive, source }));
      log("info", "Restore staged; it will be applied at the next start", {
        adminId,
        source,
        ts: restore.ts,
      });
      return restore;
    } catch (error) {
      throw stagingError(error, log);
    }
  };

  /** One archive is received or unpacked at a time, because two could fill the disk together. */
  const alone = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (receiving) {
      throw new ServiceError("overloaded", "Another archive is being received or read. Try again later.");
    }
    receiving = true;
    try {
      return await work();
    } finally {
      receiving = false;
    }
  };
  const withScheduled = <Result>(name: string, work: (path: string) => Promise<Result>): Promise<Result> =>
    alone(async () => {
      await using archive = await fetchScheduled(target(), { name, incomingDir });
      return await work(archive.path);
    });

  const withBackup = async <Result>(
    name: string,
    work: (path: string) => Promise<Result>,
  ): Promise<Result> => {
    const archive = folder.pathOf(name);
    if (archive === null || await folder.find(name) === null) throw noSuchBackup();
    return await work(archive).catch(async (error) => {
      // It may have been deleted while it was queued.
      throw await folder.find(name) === null ? noSuchBackup() : error;
    });
  };

  app.post("/backups/:name/restore", async (c) => {
    const name = c.req.param("name");
    return c.json({ restore: await withBackup(name, (path) => stage(path, { source: name, c })) });
  });
  app.post("/restore", async (c) => {
    const source = sourceSchema.safeParse(c.req.query("name"));
    if (!source.success) {
      throw new ServiceError(
        "bad_request",
        "Pass the archive's file name in the URL, such as ?name=backup.tar.zst",
      );
    }
    const restore = await alone(async () => {
      await using archive = await spoolBody(c.req.raw, {
        path: join(incomingDir, `restore-${randomBytes(8).toString("hex")}`),
        bytesMax: opsLimits.uploadedArchiveBytesMax,
        stallMs: opsLimits.uploadedArchiveStallMs,
      });
      return await stage(archive.path, { source: source.data, c });
    });
    return c.json({ restore });
  });
  app.post("/backups/:name/verify", async (c) => {
    const name = c.req.param("name");
    const archive = folder.pathOf(name);
    if (archive === null || await folder.find(name) === null) throw noSuchBackup();
    return c.json({ holds: await check(archive, name) });
  });
  app.post("/scheduled-backups/:name/restore", async (c) => {
    const name = c.req.param("name");
    return c.json({ restore: await withScheduled(name, (path) => stage(path, { source: name, c })) });
  });
  app.post("/scheduled-backups/:name/verify", async (c) => {
    const name = c.req.param("name");
    return c.json({ holds: await withScheduled(name, (path) => check(path, name)) });
  });
  if (exportRebuilt !== undefined) {
    app.post("/backups/:name/export/:table", (c) => {
      const name = c.req.param("name");
      const build = (databaseTo: string) =>
        withBackup(name, (path) => alone(() => check(path, name, databaseTo)));
      return exportRebuiltTable(c, { exportRebuilt, incomingDir, build });
    });
    app.post("/scheduled-backups/:name/export/:table", (c) => {
      const name = c.req.param("name");
      const build = (databaseTo: string) => withScheduled(name, (path) => check(path, name, databaseTo));
      return exportRebuiltTable(c, { exportRebuilt, incomingDir, build });
    });
  }
  app.get("/restore", async (c) => c.json({ restore: await restores.staged().catch(explain) }));
  app.delete("/restore", async (c) => {
    const stagedAt = c.req.query("stagedAt");
    // Concurrent requests share the result.
    if (stagedAt === undefined) cancelling ??= restores.cancel().finally(() => cancelling = null);
    const cancelled = await (stagedAt === undefined ? cancelling : restores.cancel(stagedAt))?.catch(explain);
    if (cancelled) {
      log("info", "Staged restore canceled", { adminId: c.get("adminId") });
    }
    return c.json({ cancelled });
  });
  return app;
}

/** Stages a restore, and unstages it if the administrator's session has ended meanwhile. Throws `invalid_token`. */
export async function stagedFor<Restore>(
  c: Context<AdminEnv>,
  restores: Pick<RestorePort, "cancel">,
  stage: () => Promise<Restore>,
): Promise<Restore> {
  const confirmAccess = c.get("confirmAccess");
  await confirmAccess();
  const restore = await stage();
  try {
    await confirmAccess();
  } catch (error) {
    await restores.cancel();
    throw error;
  }
  return restore;
}

/** Returns the staged restore, or the error of reading it. */
export async function stagedOrError(
  restores: Pick<RestorePort, "staged">,
): Promise<StagedRestore | { readonly error: string } | null> {
  try {
    return await restores.staged();
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

/** Reports to the administrator why the staged restore cannot be read. */
function explain(error: unknown): never {
  if (!(error instanceof RestoreError)) throw error;
  throw new ServiceError("restore_failed", error.message, { cause: error });
}

/** Error of staging for the administrator. The archive is blamed for its own faults only. */
function stagingError(error: unknown, log: Log): ServiceError {
  if (error instanceof ServiceError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  if (error instanceof RestoreError && error.fault === "archive") {
    return new ServiceError("invalid_backup", reason, { cause: error });
  }
  log("error", "Cannot stage a restore", { code: "restore", error });
  if (error instanceof RestoreError && error.fault === "room") {
    return new ServiceError("disk_full", reason, { cause: error });
  }
  return new ServiceError("restore_failed", `Cannot stage the restore: ${reason}`, { cause: error });
}
