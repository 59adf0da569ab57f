/** What `bundles.ts` makes, and where it stands in a program. */
import { join } from "node:path";

/** One folder, so that all files are equally far from the root. */
export const bundleFolder = "mod/bundles";

/** A file below the folder of a program: a new one, or one in the place of a module that processes begin with. */
export interface BundledFile {
  readonly path: string;
  readonly text: string;
}

/** Writes them into a folder that holds what a program needs of the project. */
export async function writeBundles(program: string, files: readonly BundledFile[]): Promise<void> {
  await Deno.mkdir(join(program, bundleFolder), { recursive: true });
  for (const { path, text } of files) await Deno.writeTextFile(join(program, path), text);
}
