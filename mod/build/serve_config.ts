/** `deno task build:serve`: writes the configuration for serving from a clone, without packages of tests and builds. */
import { join } from "node:path";
import { ENTRIES, nativeIds, projectDir } from "./payload.ts";
import { neededPackages, productionConfig } from "./production_config.ts";

export const SERVE_CONFIG = "deno.serve.json";
export const SERVE_LOCK = "deno.serve.lock";
/** Parts of `deno.json` that are not needed for serving. */
const OMITTED = ["fmt", "lint", "test", "exclude"];

/** Returns the contents of both files. */
export async function serveConfig(): Promise<{ readonly config: string; readonly lock: string }> {
  const lockFile = join(projectDir, "deno.lock");
  const [packages, native, project, lock] = await Promise.all([
    neededPackages(ENTRIES.map((entry) => join(projectDir, entry)), lockFile),
    nativeIds(),
    Deno.readTextFile(join(projectDir, "deno.json")),
    Deno.readTextFile(lockFile),
  ]);
  const ids = new Set([...packages.map(({ id }) => id), ...native]);
  const made = productionConfig({ project, lock, ids });
  const whole = JSON.parse(made.project) as Record<string, unknown>;
  const copied = Object.fromEntries(Object.entries(whole).filter(([name]) => !OMITTED.includes(name)));
  const tasks = Object.entries(copied["tasks"] as Record<string, string>)
    .filter(([, command]) => command.includes(SERVE_CONFIG));
  // Permission sets that no remaining task uses belong to tests and builds.
  const named = new Set(tasks.map(([, command]) => /-P=(\w+)/.exec(command)?.[1]));
  const sets = Object.entries(copied["permissions"] as Record<string, unknown>)
    .filter(([name]) => named.has(name));
  const config = {
    ...copied,
    tasks: Object.fromEntries(tasks),
    permissions: Object.fromEntries(sets),
    lock: { path: `./${SERVE_LOCK}`, frozen: true },
  };
  return { config: text(config), lock: text(JSON.parse(made.lock)) };
}

function text(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

if (import.meta.main) {
  const { config, lock } = await serveConfig();
  await Deno.writeTextFile(join(projectDir, SERVE_CONFIG), config);
  await Deno.writeTextFile(join(projectDir, SERVE_LOCK), lock);
}
