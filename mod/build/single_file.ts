/** `deno task build:single [file]`: a shell script followed by an archive, which runs without Deno on this platform. */
import { join } from "node:path";
import { buildAndReport, writeOutput } from "./output_file.ts";
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

if (import.meta.main) await buildAndReport(buildSingleFile, { usual: "dist/syncline" });
