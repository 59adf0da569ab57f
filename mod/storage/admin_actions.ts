/** What administrators ask of files that goes through all documents: which name a file, and which files nobody names. */
import { z } from "zod";
import { UserError } from "../errors.ts";
import { type MainAction, unnotedAdminAction } from "../functions/main_actions.ts";
import type { SystemCalls } from "../functions/system_calls.ts";
import { storageLimits } from "./limits.ts";
import type { FileReference, WalkPart, WalkPlace } from "./isolate_functions/references.ts";
import { system } from "./system_calls.ts";

export interface FileActionsOptions {
  readonly calls: SystemCalls;
  readonly now: () => number;
}

/** What a walk through the documents found. */
interface Walked<Found> {
  readonly found: Found;
  /** Documents looked at. */
  readonly read: number;
  /** Whether there was more to find than is told. */
  readonly more: boolean;
}

/** The actions, by function path. */
export function fileActions(options: FileActionsOptions): ReadonlyMap<string, MainAction> {
  return new Map([
    [
      "_admin/files:references",
      unnotedAdminAction(z.strictObject({ fileId: z.string() }), async ({ fileId }) => {
        const { found: references, read, more } = await referencesTo(options, fileId);
        return { references, read, more };
      }),
    ],
    [
      "_admin/files:orphans",
      unnotedAdminAction(z.strictObject({}), async () => {
        const { found: fileIds, read, more } = await orphans(options);
        return { fileIds, read, more };
      }),
    ],
  ]);
}

async function referencesTo(
  { calls }: FileActionsOptions,
  fileId: string,
): Promise<Walked<readonly FileReference[]>> {
  const found: FileReference[] = [];
  let read = 0;
  for (let place: WalkPlace | null = null;;) {
    const part: WalkPart<FileReference> = await calls.query(system.referencesAmong, { place, fileId });
    found.push(...part.found);
    read += part.read;
    const full = found.length >= storageLimits.referencesToldMax;
    if (part.next === null || full) {
      const told = found.slice(0, storageLimits.referencesToldMax);
      return { found: told, read, more: part.next !== null || told.length < found.length };
    }
    place = part.next;
  }
}

/**
 * Files that no document names. Files that came while, or shortly before, the documents were looked at are left out: the
 * document that is to name one may follow its upload.
 */
async function orphans({ calls, now }: FileActionsOptions): Promise<Walked<readonly string[]>> {
  const before = now() - storageLimits.orphanAgeMs;
  const named = new Set<string>();
  let read = 0;
  for (let place: WalkPlace | null = null;;) {
    const part: WalkPart<FileReference> = await calls.query(system.referencesAmong, { place, fileId: null });
    for (const { fileId } of part.found) named.add(fileId);
    if (named.size > storageLimits.namedFilesMax) {
      throw new UserError(
        "too_many_files",
        `Documents name more than ${storageLimits.namedFilesMax} files: orphans are not looked for among so many`,
      );
    }
    read += part.read;
    if (part.next === null) break;
    place = part.next;
  }
  const found: string[] = [];
  for (let cursor: string | null = null;;) {
    const part: { ids: string[]; cursor: string | null } = await calls.query(system.filesAmong, {
      cursor,
      before,
    });
    found.push(...part.ids.filter((id) => !named.has(id)));
    const told = found.slice(0, storageLimits.referencesToldMax);
    if (part.cursor === null || told.length < found.length) {
      return { found: told, read, more: told.length < found.length };
    }
    cursor = part.cursor;
  }
}
