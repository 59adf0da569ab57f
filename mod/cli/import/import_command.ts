/** The command `import`: documents from files into the tables of a data folder that no server uses. */
import { basename, extname, join, resolve } from "node:path";
import { statIfThere } from "../../kit/durable_files.ts";
import { type Log, stderrLog } from "../../kit/log.ts";
import { archiveNames } from "../../ops/backups/archive/mod.ts";
import {
  type FileSource,
  fileSource,
  Importer,
  ImportError,
  type ImportProgress,
  type ImportSource,
  type ImportSummary,
  tableNumbersOf,
} from "../../ops/tables/import/mod.ts";
import { type TableFormat, tableFormats } from "../../ops/tables/mod.ts";
import { type CommandSpec, exitCodes } from "../command_line.ts";
import { ConsoleProgress } from "../console_progress.ts";
import { claimData } from "../../server/data/data_owner.ts";
import { resolveFunctions } from "../../config/config.ts";
import { DataLock } from "../../server/data/data_lock.ts";
import { refuseStaged } from "../../server/data/data_restore.ts";
import { startOfflineHost } from "../../server/offline_host.ts";
import type { OptionValues } from "../../config/options.ts";
import { importSnapshot } from "./snapshot_import.ts";
import { type StopSignal, StopSignals } from "../../server/signals.ts";
import { reasonOf, StartError } from "../../config/start_error.ts";

export const importCommand: CommandSpec = {
  name: "import",
  description: "Import documents from files, all checked before any is written; the server must not run",
  argument: {
    name: "path",
    description:
      "File named for its table, such as messages.jsonl or messages.csv, a folder of such files, or an export of Convex (.zip)",
  },
  run,
};

/** The files cannot be told apart, or what they hold. */
class UnclearFilesError extends Error {}

type ImportOptions = Pick<OptionValues, "data" | "functions" | "format" | "mode">;

async function run(options: ImportOptions, path: string): Promise<number> {
  const log = stderrLog({ debug: false });
  using signals = new StopSignals();
  try {
    if (extname(path).toLowerCase() === ".zip") {
      using progress = new ConsoleProgress();
      const onProgress = ({ name, step, rows }: { name: string; step: string; rows: number }) => {
        const what = `${step === "checked" ? "Checking" : "Importing"} ${name}`;
        progress.show({ what, done: rows, of: null, unit: "documents" });
      };
      for (const line of await importSnapshot(path, { options, log, onProgress })) print(line);
      return exitCodes.ok;
    }
    const sources = await sourcesOf(path, options.format, log);
    for (const summary of await importAll(sources, options, { log, signals })) print(summaryText(summary));
    return exitCodes.ok;
  } catch (error) {
    if (error instanceof UnclearFilesError) {
      log("error", error.message);
      return exitCodes.usage;
    }
    if (!(error instanceof StartError) && !(error instanceof ImportError)) throw error;
    // Each bad row has a line of its own.
    for (const line of error.message.split("\n")) log("error", line);
    return exitCodes.failed;
  }
}

/** All files are checked before the first is written. */
async function importAll(
  sources: readonly FileSource[],
  { data, functions, mode }: ImportOptions,
  { log, signals }: { readonly log: Log; readonly signals: StopSignals },
): Promise<ImportSummary[]> {
  const { functionsDir, example } = await resolveFunctions(functions);
  if (example) log("info", "There is no folder functions: the tables are those of the bundled example");
  const dataDir = resolve(data);
  using _lock = await DataLock.acquire(dataDir, { by: "import" });
  await refuseStaged(dataDir, "what is imported");
  await claimData(dataDir, { example });
  const isNew = await statIfThere(join(dataDir, archiveNames.database)) === null;
  await using host = await startOfflineHost({
    dataDir,
    functionsDir,
    log,
    // Later a table keeps the number it has.
    ...(isNew && { tableNumbers: await tableNumbersOf(sources) }),
  });
  using progress = new ConsoleProgress();
  const importer = new Importer({ port: host, mode, onProgress: progressTo(progress, { sources, signals }) });
  for (const source of sources) await importer.check(source);
  const summaries: ImportSummary[] = [];
  for (const source of sources) {
    try {
      summaries.push(await importer.write(source));
    } catch (error) {
      for (const summary of summaries) log("info", summaryText(summary));
      throw error;
    }
  }
  return summaries;
}

/** The files at a path: one, or those in a folder, by name. */
async function sourcesOf(path: string, format: TableFormat | null, log: Log): Promise<FileSource[]> {
  let isDirectory: boolean;
  try {
    ({ isDirectory } = await Deno.stat(path));
  } catch (error) {
    throw new StartError(`Cannot import "${path}": ${reasonOf(error)}`, { cause: error });
  }
  if (isDirectory) return await sourcesIn(path, format, log);
  const found = format ?? formatOf(path);
  if (found === null) {
    throw new UnclearFilesError(
      `"${path}" ends neither in .jsonl nor in .csv: say which it is with --format`,
    );
  }
  return [fileSource({ name: basename(path), path, format: found, table: tableOf(path) })];
}

async function sourcesIn(
  folder: string,
  format: TableFormat | null,
  log: Log,
): Promise<FileSource[]> {
  const sources = new Map<string, FileSource>();
  const names: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) if (!isDirectory) names.push(name);
  for (const name of names.sort()) {
    const found = formatOf(name);
    if (name.startsWith(".") || found === null || (format !== null && found !== format)) continue;
    const table = tableOf(name);
    if (table.startsWith("_")) {
      log("warn", `${name} is left out: tables of the service cannot be imported`);
      continue;
    }
    const other = sources.get(table);
    if (other !== undefined) {
      throw new UnclearFilesError(
        `"${folder}" has two files for table "${table}", ${other.name} and ${name}: choose with --format`,
      );
    }
    sources.set(table, fileSource({ name, path: join(folder, name), format: found, table }));
  }
  if (sources.size === 0) {
    const wanted = (format === null ? tableFormats : [format]).map((ending) => `.${ending}`).join(" or ");
    throw new StartError(`There is no file to import in "${folder}": their names end in ${wanted}`);
  }
  return [...sources.values()];
}

function formatOf(path: string): TableFormat | null {
  const ending = extname(path).slice(1).toLowerCase();
  return tableFormats.find((format) => format === ending) ?? null;
}

function tableOf(path: string): string {
  return basename(path, extname(path));
}

/** Shows how far a file is. Throws behind the batch during which a signal came. */
function progressTo(
  progress: ConsoleProgress,
  { sources, signals: { first } }: {
    readonly sources: readonly FileSource[];
    readonly signals: StopSignals;
  },
): (progress: ImportProgress) => void {
  const files = new Map<ImportSource, FileSource>(sources.map((source) => [source, source]));
  let stoppedBy: StopSignal | null = null;
  void first.then((signal) => stoppedBy = signal);
  return ({ source, step, rows }) => {
    if (stoppedBy !== null) throw new Error(`${stoppedBy} ended the import`);
    const { done = 0, of = null } = files.get(source)?.read ?? {};
    if (step === "deleted") {
      progress.show({ what: `Emptying ${source.table}`, done: rows, of: null, unit: "documents" });
    } else {
      const what = `${step === "checked" ? "Checking" : "Importing"} ${source.name}`;
      progress.show({ what, done, of, unit: "bytes" });
    }
  };
}

function summaryText({ table, imported, deleted }: ImportSummary): string {
  const before = deleted === 0 ? "" : `, ${deleted} deleted before`;
  return `${table}: ${imported} ${imported === 1 ? "document" : "documents"} imported${before}`;
}

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}
