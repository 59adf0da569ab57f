/** Entry modules of processes, in the bundled server if there is one. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The project's folder, in which processes start so that they find `deno.json`. */
export const projectDir = fileURLToPath(new URL("../../..", import.meta.url));

/** Folder of a bundled server, which starts faster. Set for most files of a complete run (`tests/support/program.ts`). */
const program = Deno.env.get("SYNCLINE_TEST_PROGRAM");

export type ProgramModule = "main.ts" | "cli.ts" | "tests/support/command_process.ts";

/** Returns the path of an entry module: that of its bundle in a complete run. */
export function programModule(path: ProgramModule): string {
  return join(program ?? projectDir, path);
}
