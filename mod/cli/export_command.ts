/** The command `export`: tables of a data folder as files, all of one moment, while a server uses it or not. */
import { join, resolve } from "node:path";
import { EngineError, type ExportSnapshot, openExport } from "../engine/mod.ts";
import { statIfThere } from "../kit/durable_files.ts";
import { stderrLog } from "../kit/log.ts";
import { archiveNames } from "../ops/backups/archive/entry_names.ts";
import { ExportError, exportFiles, type ExportSummary, type FileContents } from "../ops/tables/export/mod.ts";
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
    using snapshot = await openData(data);
    using progress = new ConsoleProgress();
    const summary = await exportFiles(snapshot, {
      tables,
      format: format ?? "jsonl",
      folder,
      ...(withFiles && { files: contentsIn(data) }),
      signal: stopping.signal,
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

/**
 * A snapshot of the folder's database. While no server runs the folder is taken until the files are open, so that a restore
 * neither is half done nor begins in between; a server that starts after that is not kept waiting for the export.
 */
async function openData(dataDir: string): Promise<ExportSnapshot> {
  const path = join(dataDir, archiveNames.database);
  if (await statIfThere(dataDir) === null) {
    throw new StartError(`There is no data folder "${resolve(dataDir)}": name the server's with --data`);
  }
  using _lock = await DataLock.acquireIfFree(dataDir, { by: "export" });
  if (await statIfThere(path) === null) {
    throw new StartError(
      `There is no database in "${resolve(dataDir)}": name the server's data folder with --data`,
    );
  }
  return openExport(path);
}

function contentsIn(dataDir: string): FileContents {
  let store: Promise<LocalBlobs> | null = null;
  // A server may be writing there.
  return async (blob) =>
    await (await (store ??= LocalBlobs.open(join(dataDir, "storage"), { shared: true }))).read(blob, null);
}

function report({ ts, tables, files }: ExportSummary, folder: string): string {
  const lines = tables.map(({ name, documents, file }) =>
    `${name}: ${documents} document${documents === 1 ? "" : "s"} in ${file}`
  );
  if (files !== undefined) lines.push(`_storage: ${files} file${files === 1 ? "" : "s"} in _storage`);
  return `${lines.join("\n")}\nExported to "${resolve(folder)}", as of ts ${ts}\n`;
}
