/** Writes build outputs atomically, and never replaces a folder with a file or the reverse. */
import { dirname, join, resolve } from "node:path";

/** An expected build failure; only the message is printed. */
export class RefusedTarget extends Error {
  override readonly name = "RefusedTarget";
}

/** Throws if the target exists and is of the other kind. */
export async function refuseOtherKind(target: string, wanted: "file" | "folder"): Promise<void> {
  const found = await Deno.stat(target).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  });
  if (found === null || found.isDirectory === (wanted === "folder")) return;
  const kind = found.isDirectory ? "folder" : "file";
  throw new RefusedTarget(
    `Cannot write the ${wanted} ${target}: a ${kind} with that name exists. Move it away or remove it.`,
  );
}

/** Runs a build. A `RefusedTarget` is printed as one line and exits with code 1. */
export async function runBuild(build: () => Promise<void>): Promise<void> {
  try {
    await build();
  } catch (error) {
    if (!(error instanceof RefusedTarget)) throw error;
    await Deno.stderr.write(new TextEncoder().encode(`${error.message}\n`));
    Deno.exitCode = 1;
  }
}

/** Calls `write` with a temporary path next to the target, then renames the result to the target. */
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

/** Builds at the path in the arguments or the default path, and prints the path and size. */
export async function buildAndReport(
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
