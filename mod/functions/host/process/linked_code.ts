/** The code of a version under another name, by hard links: a version never changes, and so do its files. */
import { join } from "node:path";
import { isolateLimits } from "../../limits.ts";

/** Puts it there. Throws, and leaves nothing, when there are too many files for a moment's work. */
export function linkCode(from: string, to: string): void {
  let left = isolateLimits.linkedFilesMax;
  const link = (from: string, to: string) => {
    Deno.mkdirSync(to, { recursive: true, mode: 0o700 });
    for (const { name, isDirectory, isSymlink } of Deno.readDirSync(from)) {
      if (left-- <= 0) throw new RangeError("There are too many files");
      const [source, target] = [join(from, name), join(to, name)];
      if (isDirectory) link(source, target);
      else if (isSymlink) Deno.symlinkSync(Deno.readLinkSync(source), target);
      else Deno.linkSync(source, target);
    }
  };
  try {
    link(from, to);
  } catch (error) {
    unlinkCode(to);
    throw error;
  }
}

/** Removes it, if it is there. */
export function unlinkCode(folder: string): void {
  try {
    Deno.removeSync(folder, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
