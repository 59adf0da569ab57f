/** Imports over HTTP (IM12, IM13, IM21, IM22). Who mounts them sees to it that administrators ask. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../../../errors.ts";
import { SystemCallError } from "../../../functions/system_calls.ts";
import type { Log } from "../../../kit/log.ts";
import { opsLimits } from "../../limits.ts";
import { spoolBody } from "../../spooled_body.ts";
import type { AdminEnv } from "../../admin/admin_guard.ts";
import type { AdminWork } from "../../admin/work.ts";
import { type FileRowFault, ImportError } from "./import_error.ts";
import { tableFormats } from "../formats.ts";
import type { Importer, ImporterOptions, ImportProgress, ImportSource } from "./importer.ts";
import { ImportStatus, type RunningImport } from "./import_status.ts";
import { importModes } from "./modes.ts";

export interface ImportRoutesOptions {
  /** The writer. */
  readonly port: ImporterOptions["port"];
  /** Where it is written down that one runs, for whoever comes after the server has ended meanwhile. */
  readonly works: Pick<AdminWork, "beginImport" | "endImport">;
  /** Folder of bodies that are being imported. What a killed server left there, its owner removes. */
  readonly tempDir: string;
  /** Largest body, in bytes. */
  readonly bodyBytesMax?: number;
  /** A body that brings nothing for this long has broken off. */
  readonly stallMs?: number;
  readonly now?: () => number;
  readonly log: Log;
}

const querySchema = z.object({
  mode: z.enum(importModes).default("insert"),
  format: z.enum(tableFormats).default("jsonl"),
  dryRun: z.enum(["true", "false"]).default("false"),
  detached: z.enum(["true", "false"]).default("false"),
});

/**
 * `POST /import/{table}?mode=insert|upsert|replace&format=jsonl|csv`: answers `{imported, table, ts}`. Throws
 * `bad_request` with the first bad rows and for a body that breaks off, `not_found` for a table that is not there,
 * `body_too_large`, `disk_full`, `overloaded` while another import runs, `unavailable` when the writer cannot be asked;
 * nothing was written then. `import_stopped` says how much was. With `dryRun=true` it answers
 * `{table, rows, faults: [{line, message}], more}` and writes nothing. With `detached=true` it goes on without its client
 * once the body is there. `GET /import` tells how far it is, and how the last one ended.
 */
export function importRoutes(
  {
    port,
    works,
    tempDir,
    log,
    bodyBytesMax = opsLimits.importBodyBytesMax,
    stallMs = opsLimits.importStallMs,
    now = Date.now,
  }: ImportRoutesOptions,
): Hono<AdminEnv> {
  const app = new Hono<AdminEnv>();
  /** One is under way at most: two would take turns with the writer, and fill the disk together. */
  const status = new ImportStatus(now);

  app.get("/import", (c) => c.json(status.told));

  app.post("/import/:table", async (c) => {
    const query = querySchema.safeParse({
      mode: c.req.query("mode"),
      format: c.req.query("format"),
      dryRun: c.req.query("dryRun"),
      detached: c.req.query("detached"),
    });
    if (!query.success) {
      const modes = importModes.join(", ");
      throw new ServiceError(
        "bad_request",
        `Give mode as one of ${modes}, format as one of ${
          tableFormats.join(", ")
        }, dryRun and detached as true or false`,
      );
    }
    if (status.isRunning) throw new ServiceError("overloaded", "Another import is running, try again later");
    const { mode, format } = query.data;
    const dryRun = query.data.dryRun === "true";
    const table = c.req.param("table");
    status.begin({ table, dryRun, of: Number(c.req.header("content-length") ?? 0) || null });
    let ending: Parameters<ImportStatus["end"]>[0] = {};
    let workId: string | undefined;
    try {
      const signal = query.data.detached === "true" ? new AbortController().signal : c.req.raw.signal;
      await using body = await spoolBody(c.req.raw, {
        path: join(tempDir, `import-${randomBytes(8).toString("hex")}`),
        bytesMax: bodyBytesMax,
        stallMs,
        onBytes: (done) => status.note({ done }),
      });
      await c.get("confirmAccess")();
      status.note({ step: "checking", done: 0, of: body.size });
      // With the engine and the library of CSV.
      const [{ fileSource }, { Importer }] = await Promise.all([
        import("./file_source.ts"),
        import("./importer.ts"),
      ]);
      const source = fileSource({ name: `${table}.${format}`, table, format, path: body.path });
      if (!dryRun) {
        workId = await works.beginImport({ table, mode, startedBy: c.get("adminId") ?? "" }).catch(
          (error) => {
            throw new ImportError(
              "failed",
              "Nothing was imported.\nIt could not be written down that it begins",
              {
                cause: error,
              },
            );
          },
        );
      }
      const importer = new Importer({
        port,
        mode,
        ...(workId !== undefined && { workId }),
        // Nobody would learn of what happens from here on. Rows that are being written come whole all the same.
        onProgress({ step, rows }) {
          status.note({ step: STEPS[step], rows, done: source.read.done });
          if (step === "checked") throwIfGone(signal);
          if (step === "deleted" && signal.aborted) throw new Error("The client went away");
        },
      });
      if (dryRun) return c.json({ table, ...await dryRunOf(importer, source) });
      await importer.check(source);
      await c.get("confirmAccess")();
      throwIfGone(signal);
      status.note({ step: mode === "replace" ? "deleting" : "writing", rows: 0, done: 0 });
      const { imported, deleted, ts } = await importer.write(source);
      ending = { imported };
      log("info", "Rows were imported", { table, mode, imported, deleted });
      return c.json({ imported, table, ts });
    } catch (error) {
      const answer = answerOf(error, log);
      ending = { error: answer instanceof ServiceError ? answer.message : "The import failed" };
      throw answer;
    } finally {
      if (workId !== undefined) await works.endImport(workId, ending.error ?? null);
      status.end(ending);
    }
  });
  return app;
}

const STEPS = {
  checked: "checking",
  deleted: "deleting",
  written: "writing",
} as const satisfies Record<ImportProgress["step"], RunningImport["step"]>;

interface DryRun {
  /** Rows that fit; 0 when some do not. */
  readonly rows: number;
  readonly faults: readonly FileRowFault[];
  /** Whether there may be faults behind these: the check ended there. */
  readonly more: boolean;
}

/** What an import would do. What keeps it from being looked at all the same is thrown. */
async function dryRunOf(importer: Importer, source: ImportSource): Promise<DryRun> {
  try {
    return { ...await importer.check(source), faults: [], more: false };
  } catch (error) {
    if (!(error instanceof ImportError) || error.kind !== "bad_file") throw error;
    const { faults, message } = error;
    // A fault of the file as a whole, such as a column that the table does not have.
    if (faults.length === 0) {
      return { rows: 0, faults: [{ line: null, message: lastLine(message) }], more: false };
    }
    return { rows: 0, faults, more: faults.length >= opsLimits.importFaultsMax };
  }
}

function lastLine(text: string): string {
  return text.split("\n").at(-1) ?? text;
}

function throwIfGone(signal: AbortSignal): void {
  if (signal.aborted) throw new ServiceError("bad_request", "The client went away; nothing was imported");
}

/** What the client is told. */
function answerOf(error: unknown, log: Log): unknown {
  if (!(error instanceof ImportError)) return error;
  const { kind, message, cause } = error;
  const options = { cause: error };
  switch (kind) {
    case "unknown_table":
      return new ServiceError("not_found", message, options);
    case "bad_file":
      return new ServiceError("bad_request", message, options);
    case "failed":
      if (cause instanceof ServiceError) return cause;
      if (cause instanceof SystemCallError && cause.retryable) {
        return new ServiceError("unavailable", message, options);
      }
      log("error", "An import could not be checked", { error: cause });
      return new ServiceError("import_failed", message, options);
    case "stopped":
      log("error", "An import stopped halfway", { error: message });
      return new ServiceError("import_stopped", message, options);
    default:
      return kind satisfies never;
  }
}
