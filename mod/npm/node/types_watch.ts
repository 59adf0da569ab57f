/** Runs the app's own TypeScript in watch mode and prints errors with file and line. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { constants, setPriority } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";

/** Status messages of the compiler. */
const OWN_NEWS = /^\s*$| - (?:Starting compilation|File change detected)/;

export interface TypesWatch extends Disposable {
  /** Id of its process. */
  readonly pid: number | undefined;
}

/** Starts the compiler; returns `null` for an app without `tsconfig.json` or TypeScript. Disposing it stops it. */
export function watchTypes(root: string): TypesWatch | null {
  if (!existsSync(join(root, "tsconfig.json"))) return null;
  let tsc: string;
  try {
    tsc = createRequire(join(root, "package.json")).resolve("typescript/bin/tsc");
  } catch {
    return null;
  }
  const flags = ["--noEmit", "--watch", "--preserveWatchOutput", "--pretty", "false"];
  const child = spawn(process.execPath, [tsc, ...flags], { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  behindTheServer(child.pid);
  let errors = 0;
  createInterface({ input: child.stdout }).on("line", (line) => {
    const found = /Found (\d+) errors?\. Watching/.exec(line);
    if (found === null) {
      if (!OWN_NEWS.test(line)) process.stderr.write(`${line}\n`);
      return;
    }
    const count = Number(found[1]);
    if (count > 0) {
      process.stderr.write(`${count} type error${count === 1 ? "" : "s"}; the code is served anyway\n`);
    } else if (errors > 0) process.stderr.write("No type errors left\n");
    errors = count;
  });
  return { pid: child.pid, [Symbol.dispose]: () => void child.kill() };
}

/** Lowers the priority: the check takes several seconds of CPU at the start, when the server needs it as well. */
function behindTheServer(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_LOW);
  } catch {
    // Lowering the priority may not be permitted.
  }
}
