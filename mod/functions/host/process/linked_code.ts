/** Hard-links the code of a version under another name. Versions are immutable. */
import { join } from "node:path";
import { makeLinks, type SymbolicLink } from "../../../kit/durable_files.ts";
import { isolateLimits } from "../../limits.ts";

/** Creates the links. Rejects and leaves nothing behind if there are too many files. */
export async function linkCode(from: string, to: string): Promise<void> {
  let left = isolateLimits.linkedFilesMax;
  const links: SymbolicLink[] = [];
  const link = (from: string, to: string) => {
    Deno.mkdirSync(to, { recursive: true, mode: 0o700 });
    for (const { name, isDirectory, isSymlink } of Deno.readDirSync(from)) {
      if (left-- <= 0) throw new RangeError("There are too many files");
      const [source, target] = [join(from, name), join(to, name)];
      if (isDirectory) link(source, target);
      else if (isSymlink) links.push({ path: target, target: Deno.readLinkSync(source) });
      else Deno.linkSync(source, target);
    }
  };
  try {
    link(from, to);
    await makeLinks(links);
  } catch (error) {
    unlinkCode(to);
    throw error;
  }
}

/** Removes the links, if they exist. */
export function unlinkCode(folder: string): void {
  try {
    Deno.removeSync(folder, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
