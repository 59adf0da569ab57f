/** Imports the uploaded files of an exported folder into a new data folder, keeping their ids. */
import { join } from "node:path";
import type { IsolateHost } from "../../functions/host/mod.ts";
import { type ExportedFolder, ImportError } from "../../ops/tables/import/mod.ts";
import { ImportedFileStore, openBlobs } from "../../storage/mod.ts";

/** Stores all files and returns a summary line. Throws an `ImportError` for damaged contents. */
export async function importFiles(
  host: IsolateHost,
  { exported, dataDir, onFile }: {
    readonly exported: ExportedFolder;
    readonly dataDir: string;
    /** Called after each file. An error it throws ends the import. */
    readonly onFile: (done: number) => void;
  },
): Promise<string> {
  await using store = await openBlobs({ kind: "folder", path: join(dataDir, "storage") });
  const port = {
    mutate: host.mutate.bind(host),
    query: () => Promise.reject(new Error("Queries are not available")),
  };
  const files = new ImportedFileStore({ port, store });
  let done = 0;
  let bytes = 0;
  for await (const file of exported.files()) {
    const { readable } = await Deno.open(file.path);
    bytes += await files.store(file, readable).catch((error) => {
      const reason = error instanceof Error ? error.message : String(error);
      throw new ImportError("bad_file", `Nothing was imported.\n${file.path}: ${reason}`, { cause: error });
    });
    onFile(++done);
  }
  return `_storage: ${done} file${done === 1 ? "" : "s"} imported, ${bytes} bytes`;
}
