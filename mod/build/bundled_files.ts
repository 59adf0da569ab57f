/** The files written by `bundles.ts`, and their location in a program. */
import { join } from "node:path";

/** All files are in one folder, so the path to the root is the same for each. */
export const bundleFolder = "mod/bundles";

/** A file in the program folder: a new file, or the replacement of an entry module. */
export interface BundledFile {
  readonly path: string;
  readonly text: string;
}

/** Writes the files into a program folder. */
export async function writeBundles(program: string, files: readonly BundledFile[]): Promise<void> {
  await Deno.mkdir(join(program, bundleFolder), { recursive: true });
  for (const { path, text } of files) await Deno.writeTextFile(join(program, path), text);
}
