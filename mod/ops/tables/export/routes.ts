/**
 * `GET /export/{table}?format=jsonl|csv`: one table as a download, and `POST` with a filter in the body: what that shows of
 * it (EX10 to EX12, EX17).
 */
import { type Context, Hono } from "hono";
import { ServiceError } from "../../../errors.ts";
import type { Log } from "../../../kit/log.ts";
import { requestText } from "../../../kit/request_text.ts";
import type { AdminEnv } from "../../admin/admin_guard.ts";
import { opsLimits } from "../../limits.ts";
import { ExportError } from "./export_error.ts";
import { type TableFormat, tableFormats } from "../formats.ts";
import { exportFormats, isExportFormat } from "./formats.ts";
import type { TableDownload } from "./table_download.ts";

export interface ExportRoutesOptions {
  readonly databasePath: string;
  readonly log: Log;
  readonly limits?: Readonly<
    Record<
      "exportsAtOnceMax" | "exportStallMs" | "exportMsMax" | "exportLogBytesMax" | "exportLogCheckMs",
      number
    >
  >;
}

/** What the audit log is told of a filter: that there was one. */
const FILTERED = { where: "…" };

/** Bytes of the longest character. */
const CHAR_BYTES_MAX = 4;

/**
 * The sub-app, for `/api/admin`; who may come here is for those who mount it to say. Errors leave as `ServiceError`:
 * `not_found` for tables that cannot be exported, `bad_request` for other formats, for filters that do not fit the table and
 * for tables that do not fit into CSV,
 * `overloaded` when too many exports are under way.
 */
export function exportRoutes({ databasePath, log, limits = opsLimits }: ExportRoutesOptions): Hono<AdminEnv> {
  let running = 0;
  const app = new Hono<AdminEnv>();
  const exported = async (c: Context<AdminEnv>, { table, where }: Exported) => {
    const format = c.req.query("format") ?? "jsonl";
    if (!isExportFormat(format)) {
      throw new ServiceError(
        "bad_request",
        `There is no export format "${format}": use ${tableFormats.join(" or ")}`,
      );
    }
    // With the engine: before the look at what is under way, which has to hold until it counts.
    const { TableDownload } = await import("./table_download.ts");
    if (running >= limits.exportsAtOnceMax) {
      throw new ServiceError("overloaded", "Too many exports are under way, try again when one has ended");
    }
    const download = opened(() =>
      new TableDownload({
        databasePath,
        table,
        format,
        where,
        stallMs: limits.exportStallMs,
        msMax: limits.exportMsMax,
        logBytesMax: limits.exportLogBytesMax,
        logCheckMs: limits.exportLogCheckMs,
        onEnd(error) {
          running--;
          if (error !== null) log("error", "An export broke off", { table, error });
        },
      })
    );
    running++;
    const headers = headersOf(table, format);
    // The framework drops the body of an answer to HEAD without ending it.
    if (c.req.raw.method === "HEAD") {
      download.cancel();
      return new Response(null, { headers });
    }
    const { signal } = c.req.raw;
    await download.prepare(signal).catch((error) => refuse(signal.aborted ? clientGone() : error));
    return new Response(new ReadableStream(download), { headers });
  };
  app.get("/export/:table", (c) => {
    // What is looked for may be somebody's name, and addresses are written down on the way.
    if (c.req.query("where") !== undefined) {
      c.set("noted", FILTERED);
      throw new ServiceError(
        "bad_request",
        "A filter does not belong in the address: send it in the body of a POST",
      );
    }
    return exported(c, { table: c.req.param("table") });
  });
  app.post("/export/:table", async (c) => {
    c.set("noted", FILTERED);
    const where = await requestText(c.req.raw, opsLimits.exportWhereCharsMax * CHAR_BYTES_MAX);
    return await exported(c, { table: c.req.param("table"), where });
  });
  return app;
}

interface Exported {
  readonly table: string;
  /** Which of its documents: JSON. All without. */
  readonly where?: string;
}

function opened(open: () => TableDownload): TableDownload {
  try {
    return open();
  } catch (error) {
    refuse(error);
  }
}

/** Throws what a client is told about an error. */
function refuse(error: unknown): never {
  if (!(error instanceof ExportError)) throw error;
  throw new ServiceError(error.code === "unknown_table" ? "not_found" : "bad_request", error.message, {
    cause: error,
  });
}

/** Nobody hears it, and nothing went wrong that the log should tell. */
function clientGone(): ServiceError {
  return new ServiceError("unavailable");
}

function headersOf(table: string, format: TableFormat): Record<string, string> {
  const { extension, contentType } = exportFormats[format];
  return {
    "Content-Type": contentType,
    // Names of tables are letters, digits and underscores.
    "Content-Disposition": `attachment; filename="${table}.${extension}"`,
    "Cache-Control": "no-store",
  };
}
