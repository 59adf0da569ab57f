/** HTTP routes of backups: list, create, download, delete. */
import { Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { readJsonBody } from "../../kit/request_body.ts";
import type { Log } from "../../kit/log.ts";
import { opsLimits } from "../limits.ts";
import type { AdminEnv } from "../admin/admin_guard.ts";
import type { Backups } from "./backups.ts";

export interface BackupRoutesOptions {
  readonly backups: Backups;
  /** Additional fields of the list: the staged restore and replication. */
  readonly state: () => Promise<Readonly<Record<string, unknown>>>;
  readonly log: Log;
}

const bodySchema = z.object({
  includeAux: z.boolean().default(false),
  includeFiles: z.boolean().default(false),
});

export function backupRoutes({ backups, state, log }: BackupRoutesOptions): Hono<AdminEnv> {
  const { folder } = backups;
  const app = new Hono<AdminEnv>();
  app.get("/backups", async (c) => c.json({ backups: await folder.list(), ...await state() }));
  app.post("/backups", async (c) => {
    const wanted = await readJsonBody(c.req.raw, bodySchema, {
      bytesMax: opsLimits.bodyBytesMax,
      whenEmpty: {},
    });
    return c.json(await backups.create({ ...wanted, adminId: c.get("adminId") }));
  });
  app.get("/backups/:name", async (c) => {
    const name = c.req.param("name");
    const found = await folder.read(name);
    if (found === null) throw noSuchBackup();
    const headers = {
      "Content-Type": "application/zstd",
      "Content-Length": String(found.size),
      "Content-Disposition": `attachment; filename="${name}"`,
    };
    if (c.req.method === "GET") return c.body(found.file.readable, 200, headers);
    found.file.close();
    return c.body(null, 200, headers);
  });
  app.delete("/backups/:name", async (c) => {
    const name = c.req.param("name");
    if (!await folder.remove(name)) throw noSuchBackup();
    log("info", "Backup deleted", { adminId: c.get("adminId"), name });
    return c.json({});
  });
  return app;
}

export function noSuchBackup(): ServiceError {
  return new ServiceError("not_found", "Backup not found");
}
