/** Packs the server's files into one file, because npm needs about the same time for each file regardless of size. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { writeAll } from "../../kit/durable_files.ts";
import { packId, type PackIndex } from "../node/server_pack.ts";

/** Packs a folder into one file: a JSON line with paths and sizes, and the contents. Returns an id of the contents. */
export async function writePack(folder: string, target: string): Promise<string> {
  const paths: string[] = [];
  const list = async (below: string): Promise<void> => {
    for await (const { name, isDirectory } of Deno.readDir(join(folder, below))) {
      if (isDirectory) await list(`${below}${name}/`);
      else paths.push(below + name);
    }
  };
  await list("");
  paths.sort();
  const sizes = await Promise.all(paths.map(async (path) => (await Deno.stat(join(folder, path))).size));
  const index: PackIndex = paths.map((path, at) => [path, sizes[at] ?? 0]);
  const hash = createHash("sha256");
  using file = await Deno.open(target, { write: true, create: true, truncate: true });
  const put = async (bytes: Uint8Array) => {
    hash.update(bytes);
    await writeAll(file, bytes);
  };
  await put(new TextEncoder().encode(`${JSON.stringify(index)}\n`));
  for (const path of paths) await put(await Deno.readFile(join(folder, path)));
  return packId(hash.digest("hex"));
}
