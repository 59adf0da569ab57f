/** `deno task build:zod`: prints zod as one module, because each isolate loads it twice and its files load slowly. */
import { build, stop } from "esbuild";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Returns the source of the module. */
export async function isolateZod(): Promise<string> {
  const entry = fileURLToPath(import.meta.resolve("zod"));
  const license = await Deno.readTextFile(join(dirname(entry), "LICENSE"));
  const { outputFiles: [file] } = await build({
    entryPoints: [entry],
    bundle: true,
    format: "esm",
    target: "esnext",
    minifyWhitespace: true,
    banner: { js: `/* Built by "deno task build:zod" from the package zod:\n\n${license.trim()}\n*/` },
    write: false,
    logLevel: "warning",
  });
  await stop();
  if (file === undefined) throw new Error("esbuild produced no output");
  return file.text;
}

if (import.meta.main) await Deno.stdout.write(new TextEncoder().encode(await isolateZod()));
