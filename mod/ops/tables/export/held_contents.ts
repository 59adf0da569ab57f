/**
 * The contents of a data folder's files, held by links while they are exported. They are linked before the snapshot begins,
 * and what came since while it is open: what is deleted meanwhile is still there, and no snapshot waits for the copying.
 */
import { StoredFiles } from "../../backups/snapshot/stored_files.ts";
import { WorkFolder } from "../../backups/snapshot/work_folder.ts";
import type { FileContents } from "./exported_files.ts";

export interface HoldOptions {
  /** Ends the waiting for another export. */
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
    await stored.link();
    const held = work;
    return {
      hold: (blob) => stored.hold(blob),
      read: (blob) => stored.read(blob),
      [Symbol.asyncDispose]: () => held[Symbol.asyncDispose](),
    };
  } catch {
    await work?.[Symbol.asyncDispose]();
    options.signal.throwIfAborted();
    return null;
  }
}
