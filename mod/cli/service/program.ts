/** Detects how Syncline is installed, and the command that starts it as a service. */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { programConfig } from "../../kit/processes/program_config.ts";
import { statIfThere } from "../../kit/durable_files.ts";

/** `npm`: the npm package; `file`: the single-file server; `clone`: the sources. */
export type Installed =
  | { readonly kind: "npm" | "clone"; readonly command: readonly string[] }
  | { readonly kind: "file"; readonly command: readonly string[] };

/** Assumed path of the single-file server, which does not know its own path. */
const DEFAULT_PATH = "/usr/local/bin/syncline";

/** `npmCommand` is the command line of the npm package's launcher, one argument a line. */
export async function installedProgram(npmCommand: string | undefined): Promise<Installed> {
  if (npmCommand !== undefined) return { kind: "npm", command: npmCommand.split("\n") };
  const root = dirname(fileURLToPath(new URL("../../../main.ts", import.meta.url)));
  const runtime = Deno.execPath();
  if (await statIfThere(join(root, "../complete")) !== null && dirname(runtime) === dirname(root)) {
    return { kind: "file", command: [DEFAULT_PATH] };
  }
  const flags = ["run", "--quiet", "--no-prompt", "-P=serve", "--config", programConfig()];
  return { kind: "clone", command: [runtime, ...flags, join(root, "main.ts")] };
}
