/** A file on the disk as something to import. */
import type { ImportSource } from "./importer.ts";

/** `name` is what people are told the file is called. */
export function fileSource(
  { path, ...what }: Pick<ImportSource, "name" | "table" | "format"> & { readonly path: string },
): ImportSource {
  return { ...what, open: () => bytesOf(path) };
}

async function* bytesOf(path: string): AsyncGenerator<Uint8Array, void, void> {
  const file = await Deno.open(path);
  yield* file.readable;
}
