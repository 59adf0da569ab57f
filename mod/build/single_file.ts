/**
 * Builds the server as one file that runs where there is no Deno: `deno task build:single [file]`. It is a shell script
 * before an archive, for machines of the same kind.
 */
import { join } from "node:path";
import { buildAndTell, writeOutput } from "./output_file.ts";
import { writeArchive } from "./payload.ts";
import { singleFileHead } from "./self_extractor.ts";

/** Writes the file and makes it executable. */
export async function buildSingleFile(target: string): Promise<void> {
  await writeOutput(target, async ({ file, work }) => {
    const archive = join(work, "archive");
    const name = await writeArchive(archive, { work: join(work, "bundle") });
    await Deno.writeTextFile(file, singleFileHead(name), { mode: 0o755 });
    using from = await Deno.open(archive);
    await Deno.writeFile(file, from.readable, { append: true });
  });
}

if (import.meta.main) await buildAndTell(buildSingleFile, { usual: "dist/syncline" });
