/**
 * Builds the server as one file that runs where there is no Deno: `deno task build:single [file]`. In it are the runtime
 * that builds it, the sources, the packages and the bundled example; it is for machines of the same kind.
 */
import { createHash } from "node:crypto";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { VERSION as version } from "../server/version.ts";
import { neededPackages } from "./needed_packages.ts";
import { productionConfig } from "./production_config.ts";
import { registryFolder, selfExtractor } from "./self_extractor.ts";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));
/** What of the project the server needs. */
const PARTS = ["LICENSE", "main.ts", "cli.ts", "mod", "dashboard", "examples/chat"];
/** Modules that processes of the server begin with; the isolates' packages are among those of the first. */
const ENTRIES = ["cli.ts", "mod/storage/thumbnails/process.ts"];
/** Room for the numbers in the script, which say how long it is. */
const LENGTH_DIGITS = 12;

/** Writes the file and makes it executable. */
export async function buildSingleFile(target: string): Promise<void> {
  await Deno.mkdir(dirname(target), { recursive: true });
  const work = await Deno.makeTempDir({ dir: dirname(target), prefix: ".build-" });
  try {
    const bundle = join(work, "bundle");
    await collect(bundle);
    const archive = join(work, "archive");
    // The last entry is there only when all others are.
    await shell('tar -C "$1" -cf - deno app cache complete | gzip -6 >"$2"', [bundle, archive]);
    const payload = await Deno.readFile(archive);
    const id = createHash("sha256").update(payload).digest("hex").slice(0, 32);
    const script = new TextEncoder().encode(scriptOfItsLength(id));
    const file = join(work, "file");
    await Deno.writeFile(file, script, { mode: 0o755 });
    await Deno.writeFile(file, payload, { append: true });
    await Deno.rename(file, target);
  } finally {
    await Deno.remove(work, { recursive: true });
  }
}

/** The script names its own length, in a number of fixed width. */
function scriptOfItsLength(id: string): string {
  const ofLength = (bytes: number) => {
    const script = selfExtractor({ id, version, bytes });
    return script.padEnd(script.length + LENGTH_DIGITS - String(bytes + 1).length, "#").concat("\n");
  };
  const { length } = ofLength(0);
  return ofLength(length);
}

async function collect(bundle: string): Promise<void> {
  await Deno.mkdir(join(bundle, "app/examples"), { recursive: true });
  await copy(Deno.execPath(), join(bundle, "deno"));
  for (const part of PARTS) await copy(join(PROJECT, part), join(bundle, "app", part));
  const [project, lock] = await Promise.all(
    ["deno.json", "deno.lock"].map((name) => Deno.readTextFile(join(PROJECT, name))),
  ) as [string, string];
  const entries = ENTRIES.map((entry) => join(PROJECT, entry));
  const packages = await neededPackages(entries, join(PROJECT, "deno.lock"));
  const config = productionConfig({ project, lock, ids: new Set(packages.map(({ id }) => id)) });
  await Deno.writeTextFile(join(bundle, "app/deno.json"), config.project);
  await Deno.writeTextFile(join(bundle, "app/deno.lock"), config.lock);
  for (const { folder, place } of packages) {
    const copied = join(bundle, "cache/npm", registryFolder, place);
    await Deno.mkdir(dirname(copied), { recursive: true });
    await copy(folder, copied);
  }
  await Deno.writeTextFile(join(bundle, "complete"), "");
}

async function copy(from: string, to: string): Promise<void> {
  await shell('cp -RL "$1" "$2"', [from, to]);
}

async function shell(script: string, values: readonly string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command("sh", {
    args: ["-ec", script, "sh", ...values],
  }).output();
  if (!success) throw new Error(`Cannot build: ${new TextDecoder().decode(stderr)}`);
}

if (import.meta.main) {
  const target = resolve(Deno.args[0] ?? "dist/syncline");
  await buildSingleFile(target);
  const { size } = await Deno.stat(target);
  await Deno.stdout.write(new TextEncoder().encode(`${target}: ${Math.round(size / 1e6)} MB\n`));
}
