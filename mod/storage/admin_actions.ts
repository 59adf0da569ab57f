/** Admin actions that scan all documents: find references to a file, and find orphaned files. */
import { z } from "zod";
import { UserError } from "../errors.ts";
import { type MainAction, unauditedAdminAction } from "../functions/main_actions.ts";
import type { SystemCalls } from "../functions/system_calls.ts";
import { storageLimits } from "./limits.ts";
import type { FileReference, ScanBatch, ScanPosition } from "./isolate_functions/references.ts";
import { system } from "./system_calls.ts";

export interface FileActionsOptions {
  readonly calls: SystemCalls;
  readonly now: () => number;
}

/** Result of scanning all documents. */
interface ScanResult<Found> {
  readonly found: Found;
  readonly read: number;
  readonly more: boolean;
}

export function fileActions(options: FileActionsOptions): ReadonlyMap<string, MainAction> {
  return new Map([
    [
      "_admin/files:references",
      unauditedAdminAction(z.strictObject({ fileId: z.string() }), async ({ fileId }) => {
        const { found: references, read, more } = await referencesTo(options, fileId);
        return { references, read, more };
      }),
    ],
    [
      "_admin/files:orphans",
      unauditedAdminAction(z.strictObject({}), async () => {
        const { found: fileIds, read, more } = await orphans(options);
        return { fileIds, read, more };
      }),
    ],
  ]);
}

async function referencesTo(
  { calls }: FileActionsOptions,
  fileId: string,
): Promise<ScanResult<readonly FileReference[]>> {
  const found: FileReference[] = [];
  let read = 0;
  for (let place: ScanPosition | null = null;;) {
    const part: ScanBatch<FileReference> = await calls.query(system.referencesBatch, { place, fileId });
    found.push(...part.found);
    read += part.read;
    const full = found.length >= storageLimits.referencesReturnedMax;
    if (part.next === null || full) {
      const returned = found.slice(0, storageLimits.referencesReturnedMax);
      return { found: returned, read, more: part.next !== null || returned.length < found.length };
    }
    place = part.next;
  }
}

/** Returns unreferenced files, except recent ones: an upload precedes the document that references it. */
async function orphans({ calls, now }: FileActionsOptions): Promise<ScanResult<readonly string[]>> {
  const before = now() - storageLimits.orphanAgeMs;
  const named = new Set<string>();
  let read = 0;
  for (let place: ScanPosition | null = null;;) {
    const part: ScanBatch<FileReference> = await calls.query(system.referencesBatch, { place, fileId: null });
    for (const { fileId } of part.found) named.add(fileId);
    if (named.size > storageLimits.referencedFilesMax) {
      throw new UserError(
        "too_many_files",
        `Documents reference more than ${storageLimits.referencedFilesMax} files, which is too many to search for orphans`,
      );
    }
    read += part.read;
    if (part.next === null) break;
    place = part.next;
  }
  const found: string[] = [];
  for (let cursor: string | null = null;;) {
    const part: { ids: string[]; cursor: string | null } = await calls.query(system.filesBatch, {
      cursor,
      before,
    });
    found.push(...part.ids.filter((id) => !named.has(id)));
    const returned = found.slice(0, storageLimits.referencesReturnedMax);
    if (part.cursor === null || returned.length < found.length) {
      return { found: returned, read, more: returned.length < found.length };
    }
    cursor = part.cursor;
  }
}
