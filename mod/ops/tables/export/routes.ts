/**
 * `GET /export/{table}?format=jsonl|csv`, or `POST` with a filter in the body (EX10 to EX12, EX17). `GET
 * /restore/export/{table}` reads the staged restore (EX18).
 */
import { type Context, Hono } from "hono";
import { ServiceError } from "../../../errors.ts";
import type { Log } from "../../../kit/log.ts";
import { requestText } from "../../../kit/request_body.ts";
import type { AdminEnv } from "../../admin/admin_guard.ts";
import { opsLimits } from "../../limits.ts";
import { ExportError, exportFormats, isExportFormat } from "./exported_tables.ts";
import { type TableFormat, tableFormats } from "../mod.ts";
import type { TableDownload } from "./table_download.ts";

export interface TableExportsOptions {
  readonly databasePath: string;
  readonly log: Log;
  readonly limits?: Readonly<
    Record<
      "exportsAtOnceMax" | "exportStallMs" | "exportMsMax" | "exportLogBytesMax" | "exportLogCheckMs",
      number
    >
  >;
}

export interface ExportRoutesOptions extends TableExportsOptions {
  /** Returns the path of the staged restore's database, or `null`. */
  readonly stagedDatabase: () => Promise<string | null>;
  /** Answers with a table. By default made from these options. */
  readonly exported?: ExportTable;
}

/** Recorded in the audit log instead of the filter. */
const FILTERED = { where: "…" };

const CHAR_BYTES_MAX = 4;

/** Answers with a table. */
export type ExportTable = (c: Context<AdminEnv>, exported: Exported) => Promise<Response>;

/**
 * Creates an export that bounds the number of concurrent ones. Errors are thrown as `ServiceError`: `not_found` for tables that
 * cannot be exported, `bad_request` for other formats, invalid filters and tables that CSV cannot represent, `overloaded` for
 * too many concurrent exports.
 */
export function tableExports({ databasePath, log, limits = opsLimits }: TableExportsOptions): ExportTable {
  let running = 0;
  return async (c, { table, where, path = databasePath, build, onEnd }) => {
    const format = c.req.query("format") ?? "jsonl";
    if (!isExportFormat(format)) {
      throw new ServiceError(
        "bad_request",
        `Unknown export format "${format}". Use ${tableFormats.join(" or ")}`,
      );
    }
    // Loaded before checking the number of exports, which must not change until this one is counted.
    const { TableDownload } = await import("./table_download.ts");
    if (running >= limits.exportsAtOnceMax) {
      throw new ServiceError("overloaded", "Too many exports are running. Try again when one has finished");
    }
    running++;
    const ended = () => {
      running--;
      onEnd?.();
    };
    let download: TableDownload;
    try {
      const built = await build?.();
      download = opened(() =>
        new TableDownload({
          databasePath: built ?? path,
          table,
          format,
          where,
          stallMs: limits.exportStallMs,
          msMax: limits.exportMsMax,
          logBytesMax: limits.exportLogBytesMax,
          logCheckMs: limits.exportLogCheckMs,
          onEnd(error) {
            ended();
            if (error !== null) log("error", "Export aborted", { table, error });
          },
        })
      );
    } catch (error) {
      ended();
      throw error;
    }
    const headers = headersOf(table, format);
    // The framework drops the body of a HEAD response without canceling it.
    if (c.req.raw.method === "HEAD") {
      download.cancel();
      return new Response(null, { headers });
    }
    const { signal } = c.req.raw;
    await download.prepare(signal).catch((error) => refuse(signal.aborted ? clientGone() : error));
    return new Response(new ReadableStream(download), { headers });
  };
}

/** Routes for `/api/admin`; the parent app authenticates. */
export function exportRoutes(
  { stagedDatabase, exported: given, ...options }: ExportRoutesOptions,
): Hono<AdminEnv> {
  const exported = given ?? tableExports(options);
  const app = new Hono<AdminEnv>();
  app.get("/export/:table", (c) => {
    refuseFilter(c, ". Send the filter in the body of a POST request");
    return exported(c, { table: c.req.param("table") });
  });
  app.post("/export/:table", async (c) => {
    c.set("noted", FILTERED);
    const where = await requestText(c.req.raw, opsLimits.exportWhereCharsMax * CHAR_BYTES_MAX);
    return await exported(c, { table: c.req.param("table"), where });
  });
  app.get("/restore/export/:table", async (c) => {
    refuseFilter(c);
    const path = await stagedDatabase();
    if (path === null) throw new ServiceError("not_found", "No restore is prepared");
    return await exported(c, { table: c.req.param("table"), path });
  });
  return app;
}

interface Exported {
  readonly table: string;
  /** Filter as JSON; all documents without it. */
  readonly where?: string;
  /** Default: the database in use. */
  readonly path?: string;
  /** Called once the export has a slot. Builds its database and returns the path. Optional. */
  readonly build?: () => Promise<string>;
  /** Called when the export has ended or failed, unless it was refused before the build. Optional. */
  readonly onEnd?: () => void;
}

/** Refuses a filter in the URL: it may contain personal data, and addresses are logged on the way. */
function refuseFilter(c: Context<AdminEnv>, advice = ""): void {
  if (c.req.query("where") === undefined) return;
  c.set("noted", FILTERED);
  throw new ServiceError("bad_request", `Filters are not allowed in the URL${advice}`);
}

function opened(open: () => TableDownload): TableDownload {
  try {
    return open();
  } catch (error) {
    refuse(error);
  }
}

/** Throws the error for the client. */
function refuse(error: unknown): never {
  if (!(error instanceof ExportError)) throw error;
  throw new ServiceError(error.code === "unknown_table" ? "not_found" : "bad_request", error.message, {
    cause: error,
  });
}

/** For a client that has disconnected; not logged. */
function clientGone(): ServiceError {
  return new ServiceError("unavailable");
}

function headersOf(table: string, format: TableFormat): Record<string, string> {
  const { extension, contentType } = exportFormats[format];
  return {
    "Content-Type": contentType,
    // Table names consist of letters, digits and underscores.
    "Content-Disposition": `attachment; filename="${table}.${extension}"`,
    "Cache-Control": "no-store",
  };
}
