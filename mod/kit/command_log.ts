/** The log of a command, which may run without a server: errors link to the pages that are installed with it. */
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { type Log, stderrLog } from "./log.ts";
import { programRoot } from "./processes/program_root.ts";

export function commandLog(): Log {
  return stderrLog({ debug: false, docsLink: (path) => installedPage(path) });
}

/** Returns the Markdown file of a page such as `/_/docs/limits`, with its section. Inside `cwd`, the path is relative. */
export function installedPage(docsPath: string, cwd: string = Deno.cwd()): string {
  const [name = "", ...section] = docsPath.replace("/_/docs/", "").split("#");
  const file = fileURLToPath(new URL(`docs/${name}.md`, programRoot));
  const short = relative(cwd, file);
  return [short.startsWith("..") ? file : short, ...section].join("#");
}
