/** The program that is installed here, as a service has to start it. */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ownConfig } from "../../kit/processes/own_config.ts";
import { statIfThere } from "../../kit/durable_files.ts";

/** `npm`: the package; `file`: the server as one file; `clone`: the sources. */
export type Installed =
  | { readonly kind: "npm" | "clone"; readonly command: readonly string[] }
  | { readonly kind: "file"; readonly command: readonly string[] };

/** Where a program in one file is looked for: it does not know where it was started from. */
const USUAL_PLACE = "/usr/local/bin/syncline";

/** `told`: what the npm package's own command says it was started as, an argument a line. */
export async function installedProgram(told: string | undefined): Promise<Installed> {
  if (told !== undefined) return { kind: "npm", command: told.split("\n") };
  const root = dirname(fileURLToPath(new URL("../../../main.ts", import.meta.url)));
  const runtime = Deno.execPath();
  if (await statIfThere(join(root, "../complete")) !== null && dirname(runtime) === dirname(root)) {
    return { kind: "file", command: [USUAL_PLACE] };
  }
  const flags = ["run", "--quiet", "--no-prompt", "-P=serve", "--config", ownConfig()];
  return { kind: "clone", command: [runtime, ...flags, join(root, "main.ts")] };
}
