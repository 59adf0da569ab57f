/** What a build writes: files whole or not at all, and nothing in the place of the other kind. */
import { dirname, join, resolve } from "node:path";

/** What a build does not do; the message is all there is to say. */
export class RefusedTarget extends Error {
  override readonly name = "RefusedTarget";
}

/** Throws when something of the other kind stands where a build is to write. */
export async function refuseOtherKind(target: string, wanted: "file" | "folder"): Promise<void> {
  const found = await Deno.stat(target).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  });
  if (found === null || found.isDirectory === (wanted === "folder")) return;
  const kind = found.isDirectory ? "folder" : "file";
  throw new RefusedTarget(
    `${target} is a ${kind}, and a ${wanted} is to be written there: move it away or remove it.`,
  );
}

/** Runs a build. One that refuses says why in a sentence and ends with exit code 1. */
export async function runBuild(build: () => Promise<void>): Promise<void> {
  try {
    await build();
  } catch (error) {
    if (!(error instanceof RefusedTarget)) throw error;
    await Deno.stderr.write(new TextEncoder().encode(`${error.message}\n`));
    Deno.exitCode = 1;
  }
}

/** `write` makes the file at a path in a work folder beside the target, which the file then replaces. */
export async function writeOutput(
  target: string,
  write: (paths: { readonly file: string; readonly work: string }) => Promise<void>,
): Promise<void> {
  await refuseOtherKind(target, "file");
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
  await runBuild(async () => {
    const target = resolve(Deno.args[0] ?? usual);
    await build(target);
    const { size } = await Deno.stat(target);
    await Deno.stdout.write(new TextEncoder().encode(`${target}: ${Math.round(size / 1e6)} MB\n`));
  });
}
