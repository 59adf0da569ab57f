/** Files that a build writes: whole or not at all. */
import { dirname, join, resolve } from "node:path";

/** `write` makes the file at a path in a work folder beside the target, which the file then replaces. */
export async function writeOutput(
  target: string,
  write: (paths: { readonly file: string; readonly work: string }) => Promise<void>,
): Promise<void> {
  await Deno.mkdir(dirname(target), { recursive: true });
  const work = await Deno.makeTempDir({ dir: dirname(target), prefix: ".build-" });
  try {
    const file = join(work, "file");
    await write({ file, work });
    await Deno.rename(file, target);
  } finally {
    await Deno.remove(work, { recursive: true });
  }
}

/** Builds at the path that the arguments name, or the usual one, and says where and how large it is. */
export async function buildAndTell(
  build: (target: string) => Promise<void>,
  { usual }: { readonly usual: string },
): Promise<void> {
  const target = resolve(Deno.args[0] ?? usual);
  await build(target);
  const { size } = await Deno.stat(target);
  await Deno.stdout.write(new TextEncoder().encode(`${target}: ${Math.round(size / 1e6)} MB\n`));
}
