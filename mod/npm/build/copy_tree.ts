/** Copies folders, filtering files that a package does not need. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const projectDir: string = fileURLToPath(new URL("../../../", import.meta.url));

/** Copies a folder. `keep` receives relative paths; those of folders end with a slash. */
export async function copyTree(
  from: string,
  to: string,
  keep: (path: string) => boolean = () => true,
): Promise<void> {
  const copy = async (below: string): Promise<void> => {
    for await (const { name, isDirectory } of Deno.readDir(join(from, below))) {
      const path = `${below}${name}`;
      if (isDirectory) {
        if (keep(`${path}/`)) await copy(`${path}/`);
      } else if (keep(path)) {
        await Deno.mkdir(join(to, below), { recursive: true });
        await Deno.copyFile(join(from, path), join(to, path));
      }
    }
  };
  await copy("");
}
