/** The app's own TypeScript, which watches its files and tells of errors with file and line. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { constants, setPriority } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";

/** What it says about itself. */
const OWN_NEWS = /^\s*$| - (?:Starting compilation|File change detected)/;

export interface TypesWatch extends Disposable {
  /** Of its process. */
  readonly pid: number | undefined;
}

/** Starts it; `null` for an app without `tsconfig.json` or without TypeScript. Disposing of it ends it. */
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
      process.stderr.write(`${count} type error${count === 1 ? "" : "s"}; the code is served nevertheless\n`);
    } else if (errors > 0) process.stderr.write("The types are right again\n");
    errors = count;
  });
  return { pid: child.pid, [Symbol.dispose]: () => void child.kill() };
}

/** It wants several seconds of a processor at the start, and some after each edit, when the server needs it as well. */
function behindTheServer(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_LOW);
  } catch {
    // The system does not let everybody choose: then both take turns.
  }
}
