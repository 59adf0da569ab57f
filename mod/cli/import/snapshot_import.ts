/** Imports a Convex export: all tables and files into a new data folder, or nothing. */
import { join, resolve } from "node:path";
import { resolveFunctions } from "../../config/functions_folder.ts";
import type { OptionValues } from "../../config/options.ts";
import { StartError } from "../../config/start_error.ts";
import type { IsolateHost } from "../../functions/host/mod.ts";
import { statIfThere } from "../../kit/durable_files.ts";
import type { Log } from "../../kit/log.ts";
import { archiveNames } from "../../ops/backups/archive/entry_names.ts";
import { ConvexSnapshot } from "../../ops/tables/convex/mod.ts";
import { Importer, ImportError, type ImportProgress } from "../../ops/tables/import/mod.ts";
import { claimData } from "../../server/data/data_owner.ts";
import { DataLock } from "../../server/data/data_lock.ts";
import { checkNoStagedRestore } from "../../server/data/data_restore.ts";
import { createImportedData, removeUnfinishedImport } from "../../server/data/unfinished_import.ts";
import { startOfflineHost } from "../../server/offline_host.ts";
import { ImportedFileStore, openBlobs } from "../../storage/mod.ts";

/** First table number of the app's tables, so that ids can be generated before anything is written. */
const FIRST_TABLE_NUMBER = 10_001;

interface SnapshotImport {
  readonly options: Pick<OptionValues, "data" | "functions">;
  readonly log: Log;
  readonly onProgress: (progress: Pick<ImportProgress, "step" | "rows"> & { readonly name: string }) => void;
}

/** Imports and returns the lines of the report. On a `StartError` or `ImportError` the data folder is unchanged. */
export async function importSnapshot(
  path: string,
  { options: { data, functions }, log, onProgress }: SnapshotImport,
): Promise<readonly string[]> {
  const { functionsDir, example } = await resolveFunctions(functions);
  if (example) {
    throw new StartError('No folder "functions" here: pass the app\'s functions folder with --functions', {
      code: "app_not_loaded",
    });
  }
  const dataDir = resolve(data);
  const names = await ConvexSnapshot.tableNames(path);
  using _lock = await DataLock.acquire(dataDir, { by: "import" });
  await removeUnfinishedImport(dataDir);
  await checkNoStagedRestore(dataDir, "the imported data");
  if (await statIfThere(join(dataDir, archiveNames.database)) !== null) {
    throw new StartError(
      `"${dataDir}" already contains data: import a Convex export into a new folder with --data`,
      { code: "import" },
    );
  }
  return await createImportedData(dataDir, async () => {
    const tableNumbers = new Map(names.map((name, at) => [name, FIRST_TABLE_NUMBER + at]));
    await claimData(dataDir, { example: false });
    await using host = await startOfflineHost({ dataDir, functionsDir, tableNumbers, log });
    return await intoNew(host, { path, dataDir, tableNumbers, onProgress });
  });
}

async function intoNew(
  host: IsolateHost,
  { path, dataDir, tableNumbers, onProgress }: {
    readonly path: string;
    readonly dataDir: string;
    readonly tableNumbers: ReadonlyMap<string, number>;
  } & Pick<SnapshotImport, "onProgress">,
): Promise<readonly string[]> {
  await using store = await openBlobs({ kind: "folder", path: join(dataDir, "storage") });
  const port = {
    mutate: host.mutate.bind(host),
    query: () => Promise.reject(new Error("Queries are not available")),
  };
  const files = new ImportedFileStore({ port, store });
  using snapshot = await ConvexSnapshot.open(path, {
    tableNumbers,
    fileIds: (count) => files.newIds(count),
  });
  const importer = new Importer({
    port: host,
    mode: "insert",
    onProgress: ({ source, step, rows }) => onProgress({ name: source.name, step, rows }),
  });
  const sources = snapshot.tables.map(({ table }) => snapshot.source(table));
  for (const source of sources) await importer.check(source);
  const before = snapshot.references;
  const report: string[] = [];
  for (const source of sources) {
    const { table, imported } = await importer.write(source);
    report.push(`${table}: ${counted(imported, "document")} imported`);
  }
  let bytes = 0;
  for (const [at, file] of snapshot.files.entries()) {
    onProgress({ name: "_storage", step: "written", rows: at });
    bytes += await files.store(file, snapshot.contents(file)).catch((error) => {
      const reason = error instanceof Error ? error.message : String(error);
      throw new ImportError("bad_file", `Nothing was imported.\n${file.entry}: ${reason}`, { cause: error });
    });
  }
  if (snapshot.files.length > 0) {
    report.push(`_storage: ${counted(snapshot.files.length, "file")} imported, ${bytes} bytes`);
  }
  report.push(`${counted(snapshot.references - before, "reference")} to documents and files mapped`);
  return [
    ...report,
    ...snapshot.skipped.map((table) => `${table}: skipped, it is an internal table of Convex`),
  ];
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
