/** Imports over HTTP (IM12, IM13). Who mounts them sees to it that administrators ask. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../../../errors.ts";
import { SystemCallError } from "../../../functions/system_calls.ts";
import type { Log } from "../../../kit/log.ts";
import { opsLimits } from "../../limits.ts";
import { spoolBody } from "../../spooled_body.ts";
import { fileSource } from "./file_source.ts";
import { ImportError } from "./import_error.ts";
import { tableFormats } from "../formats.ts";
import { Importer, type ImporterOptions } from "./importer.ts";
import { importModes } from "./modes.ts";

export interface ImportRoutesOptions {
  /** The writer. */
  readonly port: ImporterOptions["port"];
  /** Folder of bodies that are being imported. What a killed server left there, its owner removes. */
  readonly tempDir: string;
  /** Largest body, in bytes. */
  readonly bodyBytesMax?: number;
  /** A body that brings nothing for this long has broken off. */
  readonly stallMs?: number;
  readonly log: Log;
}

const querySchema = z.object({
  mode: z.enum(importModes).default("insert"),
  format: z.enum(tableFormats).default("jsonl"),
});

/**
 * `POST /import/{table}?mode=insert|upsert|replace&format=jsonl|csv`: answers `{imported, table, ts}`. Throws
 * `bad_request` with the first bad rows and for a body that breaks off, `not_found` for a table that is not there,
 * `body_too_large`, `disk_full`, `overloaded` while another import runs, `unavailable` when the writer cannot be asked;
 * nothing was written then. `import_stopped` says how much was.
 */
export function importRoutes(
  { port, tempDir, log, bodyBytesMax = opsLimits.importBodyBytesMax, stallMs = opsLimits.importStallMs }:
    ImportRoutesOptions,
): Hono {
  const app = new Hono();
  /** Whether an import is under way: two would take turns with the writer, and fill the disk together. */
  let importing = false;

  app.post("/import/:table", async (c) => {
    const query = querySchema.safeParse({ mode: c.req.query("mode"), format: c.req.query("format") });
    if (!query.success) {
      throw new ServiceError(
        "bad_request",
        `Give mode as one of ${importModes.join(", ")} and format as one of ${tableFormats.join(", ")}`,
      );
    }
    if (importing) throw new ServiceError("overloaded", "Another import is running, try again later");
    importing = true;
    try {
      const { mode, format } = query.data;
      const table = c.req.param("table");
      const { signal } = c.req.raw;
      await using body = await spoolBody(c.req.raw, {
        path: join(tempDir, `import-${randomBytes(8).toString("hex")}`),
        bytesMax: bodyBytesMax,
        stallMs,
      });
      const source = fileSource({ name: `${table}.${format}`, table, format, path: body.path });
      const importer = new Importer({
        port,
        mode,
        // Nobody would learn of what happens from here on. Rows that are being written come whole all the same.
        onProgress({ step }) {
          if (step === "checked") throwIfGone(signal);
          if (step === "deleted" && signal.aborted) throw new Error("The client went away");
        },
      });
      await importer.check(source);
      throwIfGone(signal);
      const { imported, deleted, ts } = await importer.write(source);
      log("info", "Rows were imported", { table, mode, imported, deleted });
      return c.json({ imported, table, ts });
    } catch (error) {
      throw answerOf(error, log);
    } finally {
      importing = false;
    }
  });
  return app;
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
