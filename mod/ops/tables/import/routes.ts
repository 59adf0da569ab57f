/** HTTP routes of imports (IM12, IM13, IM21, IM22). The parent app authenticates administrators. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { type Context, Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../../../errors.ts";
import { anonymous, type Identity } from "../../../functions/identity.ts";
import { SystemCallError } from "../../../functions/system_calls.ts";
import type { Log } from "../../../kit/log.ts";
import { opsLimits } from "../../limits.ts";
import { spoolBody } from "../../spooled_body.ts";
import type { AdminEnv } from "../../admin/admin_guard.ts";
import type { AdminWork } from "../../admin/work.ts";
import { csvLimits } from "../../../kit/limits.ts";
import { type FileRowFault, ImportError, ImportStatus, type RunningImport } from "./import_status.ts";
import { importModes, type TableFormat, tableFormats } from "../mod.ts";
import type { Importer, ImporterOptions, ImportProgress, ImportSource } from "./importer.ts";

export interface ImportRoutesOptions {
  /** The writer. */
  readonly port: ImporterOptions["port"];
  /** Records running imports, so that an interrupted one is reported after a restart. */
  readonly works: Pick<AdminWork, "beginImport" | "endImport">;
  /** Folder of request bodies. The owner removes leftovers of a killed server. */
  readonly tempDir: string;
  readonly bodyBytesMax?: number;
  /** Time without bytes after which a body fails. */
  readonly stallMs?: number;
  readonly now?: () => number;
  readonly log: Log;
}

const querySchema = z.object({
  mode: z.enum(importModes).default("insert"),
  format: z.enum(tableFormats).default("jsonl"),
  dryRun: z.enum(["true", "false"]).default("false"),
  detached: z.enum(["true", "false"]).default("false"),
  columns: z.string().optional(),
  /** Origin of the rows as the client names it, for the audit log. */
  source: z.string().min(1).max(opsLimits.archiveSourceCharsMax).regex(/^\P{Cc}+$/u).optional(),
});

const columnsSchema = z.array(z.string().nullable()).max(csvLimits.columnsMax);

/** Parses the fields for the columns of a CSV file, a JSON array. */
function columnsOf(text: string | undefined, format: TableFormat): { columns?: (string | null)[] } {
  if (text === undefined) return {};
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  const parsed = columnsSchema.safeParse(json);
  if (format === "csv" && parsed.success) return { columns: parsed.data };
  throw new ServiceError(
    "bad_request",
    "columns must be a JSON array of field names, with null for columns to skip, and needs format=csv",
  );
}

/**
 * `POST /import/{table}?mode=insert|upsert|replace&format=jsonl|csv` responds with `{imported, table, ts}`. Throws `bad_request`
 * with the first invalid rows and for incomplete bodies, `not_found` for an unknown table, `body_too_large`, `disk_full`,
 * `overloaded` while another import runs, and `unavailable` if the writer cannot be reached; in these cases nothing was written.
 * `import_stopped` states how much was written. With `dryRun=true` it responds with `{table, rows, faults: [{line, message}],
 * more}` and writes nothing. `columns` names the fields of the columns of a CSV file instead of its header. With `detached=true` it continues without the client once the body was received. `GET /import`
 * returns the status of the running and the last import.
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
  /** At most one at a time, because two would compete for the writer and the disk. */
  const status = new ImportStatus(now);

  app.get("/import", (c) => c.json(status.current));

  app.post("/import/:table", async (c) => {
    const query = querySchema.safeParse({
      mode: c.req.query("mode"),
      format: c.req.query("format"),
      dryRun: c.req.query("dryRun"),
      detached: c.req.query("detached"),
      columns: c.req.query("columns"),
      source: c.req.query("source"),
    });
    if (!query.success) {
      const modes = importModes.join(", ");
      throw new ServiceError(
        "bad_request",
        `mode must be one of ${modes}, format one of ${
          tableFormats.join(", ")
        }, dryRun and detached true or false, and source at most ${opsLimits.archiveSourceCharsMax} characters without control characters`,
      );
    }
    if (status.isRunning) throw new ServiceError("overloaded", "Another import is running. Try again later");
    const { mode, format } = query.data;
    const columns = columnsOf(query.data.columns, format);
    const dryRun = query.data.dryRun === "true";
    if (dryRun) c.set("noted", { dryRun });
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
        onBytes: (done) => status.update({ done }),
      });
      await c.get("confirmAccess")();
      status.update({ step: "checking", done: 0, of: body.size });
      // Loaded with the engine and the CSV library.
      const [{ fileSource }, { Importer }] = await Promise.all([
        import("./importer.ts"),
        import("./importer.ts"),
      ]);
      const source = fileSource({
        name: `${table}.${format}`,
        table,
        format,
        path: body.path,
        ...columns,
      });
      if (!dryRun) {
        workId = await works.beginImport({ table, mode, startedBy: c.get("adminId") ?? "" }).catch(
          (error) => {
            throw new ImportError(
              "failed",
              "Nothing was imported.\nCannot record the start of the import",
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
        identity: identityOf(c),
        ...(workId !== undefined && { workId }),
        // From here on no one would learn the outcome. Rows being written are completed anyway.
        onProgress({ step, rows }) {
          status.update({ step: STEPS[step], rows, done: source.read.done });
          if (step === "checked") throwIfGone(signal);
          if (step === "deleted" && signal.aborted) throw new Error("The client disconnected");
        },
      });
      if (dryRun) return c.json({ table, ...await dryRunOf(importer, source) });
      await importer.check(source);
      await c.get("confirmAccess")();
      throwIfGone(signal);
      status.update({ step: mode === "replace" ? "deleting" : "writing", rows: 0, done: 0 });
      const { imported, deleted, ts } = await importer.write(source);
      ending = { imported };
      log("info", "Import finished", { table, mode, imported, deleted });
      return c.json({ imported, table, ts });
    } catch (error) {
      const answer = answerOf(error, log);
      ending = { error: answer instanceof ServiceError ? answer.message : "Import failed" };
      throw answer;
    } finally {
      if (workId !== undefined) await works.endImport(workId, ending.error ?? null);
      status.end(ending);
    }
  });
  return app;
}

function identityOf(c: Context<AdminEnv>): Identity {
  const [adminId, sessionId] = [c.get("adminId"), c.get("sessionId")];
  return { ...anonymous, principal: `admin:${adminId}`, adminId, sessionId };
}

const STEPS = {
  checked: "checking",
  deleted: "deleting",
  written: "writing",
} as const satisfies Record<ImportProgress["step"], RunningImport["step"]>;

interface DryRun {
  /** Valid rows; 0 if some are invalid. */
  readonly rows: number;
  readonly faults: readonly FileRowFault[];
  /** Whether there may be further errors, because the check stopped. */
  readonly more: boolean;
}

/** Returns the result of a dry run. Throws errors that prevent the check. */
async function dryRunOf(importer: Importer, source: ImportSource): Promise<DryRun> {
  try {
    return { ...await importer.check(source), faults: [], more: false };
  } catch (error) {
    if (!(error instanceof ImportError) || error.kind !== "bad_file") throw error;
    const { faults, message } = error;
    // An error of the file as a whole, such as an unknown column.
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
  if (signal.aborted) throw new ServiceError("bad_request", "The client disconnected; nothing was imported");
}

/** Converts an error for the client. */
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
      log("error", "Import check failed", { error: cause });
      return new ServiceError("import_failed", message, options);
    case "stopped":
      log("error", "Import interrupted", { error: message });
      return new ServiceError("import_stopped", message, options);
    default:
      return kind satisfies never;
  }
}
