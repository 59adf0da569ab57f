/**
 * The contents of a data folder's files, held by links while they are exported. They are linked before the snapshot begins,
 * and what came since as soon as it is open: what is deleted meanwhile is still there, and no snapshot waits for the copying.
 */
import { StoredFiles } from "../../backups/snapshot/stored_files.ts";
import { WorkFolder } from "../../backups/snapshot/work_folder.ts";
import { fileErrorReason } from "../../../kit/file_error_reason.ts";
import { ExportError } from "./export_error.ts";
import type { FileContents } from "./exported_files.ts";

export interface HoldOptions {
  /** Ends the waiting for another export, and the linking. */
  readonly signal: AbortSignal;
  /** Called when another export that holds files of the folder has to be waited for. */
  readonly onWait: () => void;
}

/** Links all files there are. `null` where the disk has no links, or nothing may be written. Throws what `signal` is aborted with. */
export async function holdContents(
  dataDir: string,
  options: HoldOptions,
): Promise<Required<FileContents> & AsyncDisposable | null> {
  let work: WorkFolder | null = null;
  try {
    work = await WorkFolder.take(dataDir, { kind: "export", ...options });
    const stored = new StoredFiles(dataDir, work.links);
    await stored.link(options.signal);
    const held = work;
    const linking = <Result>(links: Promise<Result>) => told(links, { dataDir, signal: options.signal });
    return {
      holdAll: () => linking(stored.link(options.signal)),
      hold: (blob) => linking(stored.hold(blob)),
      read: (blob) => stored.read(blob),
      [Symbol.asyncDispose]: () => held[Symbol.asyncDispose](),
    };
  } catch {
    await work?.[Symbol.asyncDispose]();
    options.signal.throwIfAborted();
    return null;
  }
}

/** What the disk of the data folder refuses is not to be taken for a fault of the folder that is written to. */
async function told<Result>(
  links: Promise<Result>,
  { dataDir, signal }: { readonly dataDir: string; readonly signal: AbortSignal },
): Promise<Result> {
  try {
    return await links;
  } catch (cause) {
    signal.throwIfAborted();
    throw new ExportError(
      "failed",
      `Cannot hold the files in the data folder "${dataDir}" while they are exported: ${
        fileErrorReason(cause)
      }`,
      { cause },
    );
  }
}
