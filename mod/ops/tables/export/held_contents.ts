/**
 * Holds the contents of stored files by hard links during an export. They are linked before the snapshot is opened, and newer
 * ones right after, so deleted files stay available without keeping the snapshot open.
 */
import { StoredFiles } from "../../backups/snapshot/stored_files.ts";
import { WorkFolder } from "../../backups/snapshot/work_folder.ts";
import { fileErrorReason } from "../../../kit/file_error_reason.ts";
import { ExportError } from "./export_error.ts";
import type { FileContents } from "./exported_files.ts";

export interface HoldOptions {
  /** Aborts waiting and linking. */
  readonly signal: AbortSignal;
  /** Called if another export of the folder must finish first. */
  readonly onWait: () => void;
}

/** Links all files. `null` if the disk does not support links or is read-only. Throws the reason of `signal`. */
export async function holdContents(
  dataDir: string,
  options: HoldOptions,
): Promise<Required<FileContents> & AsyncDisposable | null> {
  let work: WorkFolder | null = null;
  try {
    work = await WorkFolder.acquire(dataDir, { kind: "export", ...options });
    const stored = new StoredFiles(dataDir, work.links);
    await stored.link(options.signal);
    const held = work;
    const linking = <Result>(links: Promise<Result>) =>
      attributed(links, { dataDir, signal: options.signal });
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

/** Attributes errors of the data folder's disk to it, instead of to the destination. */
async function attributed<Result>(
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
