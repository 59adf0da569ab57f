/** The command `export`: writes tables of a data folder to files from one snapshot, whether or not a server runs. */
import { helpFields } from "../explained.ts";
import { join, resolve } from "node:path";
import { EngineError, type ExportSnapshot, openExport } from "../engine/mod.ts";
import { statIfThere } from "../kit/durable_files.ts";
import type { Log } from "../kit/log.ts";
import { archiveNames } from "../ops/backups/archive/entry_names.ts";
import {
  ExportError,
  exportNewest,
  type ExportSummary,
  type FileContents,
  holdContents,
} from "../ops/tables/export/mod.ts";
import { openBlobs } from "../storage/mod.ts";
import { type CommandSpec, exitCodes } from "./command_line.ts";
import { commandLog } from "../kit/command_log.ts";
import { ConsoleProgress } from "./console_progress.ts";
import { DataLock } from "../server/data/data_lock.ts";
import type { OptionValues } from "../config/options.ts";
import { StopSignals } from "../server/signals.ts";
import { StartError } from "../config/start_error.ts";

export const exportCommand: CommandSpec = {
  name: "export",
  description: "Export tables to files from one snapshot; the server can keep running",
  run,
};

type ExportCommandOptions = Pick<OptionValues, "data" | "tables" | "format" | "out" | "withFiles">;

async function run({ data, tables, format, out, withFiles }: ExportCommandOptions): Promise<number> {
  const log = commandLog();
  const folder = out ?? `./export-${new Date().toISOString().replaceAll(":", "-").replace(/\..*/, "Z")}`;
  const stopping = new AbortController();
  using signals = new StopSignals();
  void signals.first.then((signal) =>
    stopping.abort(new ExportError("failed", `Stopped by ${signal}: nothing was exported`))
  );
  try {
    await checkData(data);
    const { signal } = stopping;
    await using contents = withFiles ? await contentsIn(data, { signal, log }) : null;
    using progress = new ConsoleProgress();
    const summary = await exportNewest({
      databasePath: databaseIn(data),
      open: () => openData(data),
      tables,
      format: format ?? "jsonl",
      folder,
      ...(contents !== null && { files: contents }),
      signal,
      onProgress: (step) => progress.show(step),
    });
    progress[Symbol.dispose]();
    await Deno.stdout.write(new TextEncoder().encode(report(summary, folder)));
    return exitCodes.ok;
  } catch (error) {
    const isExpected = error instanceof StartError || error instanceof ExportError ||
      error instanceof EngineError;
    if (!isExpected) throw error;
    log("error", error.message, helpFields(error));
    return exitCodes.failed;
  }
}

async function checkData(dataDir: string): Promise<void> {
  if (await statIfThere(dataDir) === null) {
    throw new StartError(
      `Data folder "${resolve(dataDir)}" does not exist: pass the server's data folder with --data`,
      { code: "data_folder" },
    );
  }
  await checkDatabase(dataDir);
}

async function checkDatabase(dataDir: string): Promise<void> {
  if (await statIfThere(databaseIn(dataDir)) !== null) return;
  throw new StartError(
    `Folder "${resolve(dataDir)}" contains no database: pass the server's data folder with --data`,
    { code: "data_folder" },
  );
}

function databaseIn(dataDir: string): string {
  return join(dataDir, archiveNames.database);
}

/** Opens a snapshot. Without a server, the folder is locked until then, so that no restore can be half done. */
async function openData(dataDir: string): Promise<ExportSnapshot> {
  using _lock = await DataLock.acquireIfFree(dataDir, { by: "export" });
  await checkDatabase(dataDir);
  return openExport(databaseIn(dataDir));
}

/** Holds the file contents with hard links during the export. Without hard links, files may vanish before they are read. */
async function contentsIn(
  dataDir: string,
  { signal, log }: { readonly signal: AbortSignal; readonly log: Log },
): Promise<FileContents & AsyncDisposable> {
  const onWait = () => log("info", "Waiting for another export with files to finish");
  const held = await holdContents(dataDir, { signal, onWait });
  if (held !== null) return held;
  // A server may write to it at the same time.
  const blobs = await openBlobs({ kind: "folder", path: join(dataDir, "storage") }, { shared: true });
  return { read: (blob) => blobs.read(blob, null), [Symbol.asyncDispose]: () => Promise.resolve() };
}

function report({ ts, tables, files }: ExportSummary, folder: string): string {
  const lines = tables.map(({ name, documents, file }) =>
    `${name}: ${documents} document${documents === 1 ? "" : "s"} in ${file}`
  );
  if (files !== undefined) lines.push(`_storage: ${files} file${files === 1 ? "" : "s"} in _storage`);
  return `${lines.join("\n")}\nExported to "${resolve(folder)}", as of ts ${ts}\n`;
}
