/** Import sources on disk. */
import type { ImportSource } from "./importer.ts";

/** A file with its read progress. */
export interface FileSource extends ImportSource {
  readonly read: { readonly done: number; readonly of: number };
}

/** `name` is the display name. */
export function fileSource(
  { path, ...what }: Pick<ImportSource, "name" | "table" | "format"> & { readonly path: string },
): FileSource {
  const read = { done: 0, of: 0 };
  async function* open(): AsyncGenerator<Uint8Array, void, void> {
    const file = await Deno.open(path);
    const { size } = await file.stat();
    Object.assign(read, { done: 0, of: size });
    for await (const chunk of file.readable) {
      read.done += chunk.length;
      yield chunk;
    }
  }
  return { ...what, read, open };
}
