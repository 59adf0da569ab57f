/**
 * `deno task build:zod`: prints zod as one module, which isolates load twice, under two addresses: once for the service and
 * once for app code. The package has a hundred files, and each process would look up, read and compile every one of them.
 */
import { build, stop } from "esbuild";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The text of the module. */
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
  if (file === undefined) throw new Error("The builder gave no file");
  return file.text;
}

if (import.meta.main) await Deno.stdout.write(new TextEncoder().encode(await isolateZod()));
