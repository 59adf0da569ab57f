/** The command `export`: tables of a data folder as files, all of one moment, while a server uses it or not. */
import { join, resolve } from "node:path";
import { EngineError, type ExportSnapshot, openExport } from "../engine/mod.ts";
import { statIfThere } from "../kit/durable_files.ts";
import { type Log, stderrLog } from "../kit/log.ts";
import { archiveNames } from "../ops/backups/archive/entry_names.ts";
import {
  ExportError,
  exportNewest,
  type ExportSummary,
  type FileContents,
  holdContents,
} from "../ops/tables/export/mod.ts";
import { LocalBlobs } from "../storage/mod.ts";
import { type CommandSpec, exitCodes } from "./command_line.ts";
import { ConsoleProgress } from "./console_progress.ts";
import { DataLock } from "../server/data/data_lock.ts";
import type { OptionValues } from "../config/options.ts";
import { StopSignals } from "../server/signals.ts";
import { StartError } from "../config/start_error.ts";

export const exportCommand: CommandSpec = {
  name: "export",
  description: "Export tables to files, all of one moment, while the server runs or not",
  run,
};

type ExportCommandOptions = Pick<OptionValues, "data" | "tables" | "format" | "out" | "withFiles">;

async function run({ data, tables, format, out, withFiles }: ExportCommandOptions): Promise<number> {
  const log = stderrLog({ debug: false });
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
    const isTold = error instanceof StartError || error instanceof ExportError ||
      error instanceof EngineError;
    if (!isTold) throw error;
    log("error", error.message);
    return exitCodes.failed;
  }
}

/** Before anything is made in the folder. */
async function checkData(dataDir: string): Promise<void> {
  if (await statIfThere(dataDir) === null) {
    throw new StartError(`There is no data folder "${resolve(dataDir)}": name the server's with --data`);
  }
  await checkDatabase(dataDir);
}

async function checkDatabase(dataDir: string): Promise<void> {
  if (await statIfThere(databaseIn(dataDir)) !== null) return;
  throw new StartError(
    `There is no database in "${resolve(dataDir)}": name the server's data folder with --data`,
  );
}

function databaseIn(dataDir: string): string {
  return join(dataDir, archiveNames.database);
}

/**
 * A snapshot of the folder's database. While no server runs the folder is taken until the files are open, so that a restore
 * neither is half done nor begins in between; a server that starts after that is not kept waiting for the export.
 */
async function openData(dataDir: string): Promise<ExportSnapshot> {
  using _lock = await DataLock.acquireIfFree(dataDir, { by: "export" });
  await checkDatabase(dataDir);
  return openExport(databaseIn(dataDir));
}

/** Contents that stay while they are exported, or, where nothing can be linked, those that are there when they are read. */
async function contentsIn(
  dataDir: string,
  { signal, log }: { readonly signal: AbortSignal; readonly log: Log },
): Promise<FileContents & AsyncDisposable> {
  const onWait = () => log("info", "Another export takes files along: waiting until it has ended");
  const held = await holdContents(dataDir, { signal, onWait });
  if (held !== null) return held;
  // A server may be writing there.
  const blobs = await LocalBlobs.open(join(dataDir, "storage"), { shared: true });
  return { read: (blob) => blobs.read(blob, null), [Symbol.asyncDispose]: () => Promise.resolve() };
}

function report({ ts, tables, files }: ExportSummary, folder: string): string {
  const lines = tables.map(({ name, documents, file }) =>
    `${name}: ${documents} document${documents === 1 ? "" : "s"} in ${file}`
  );
  if (files !== undefined) lines.push(`_storage: ${files} file${files === 1 ? "" : "s"} in _storage`);
  return `${lines.join("\n")}\nExported to "${resolve(folder)}", as of ts ${ts}\n`;
}
