/** Runs the app's own TypeScript in watch mode and prints one report per edit. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { constants, setPriority } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { TypeReports } from "./type_report.ts";

/** A result is printed unless another one follows within this time. */
const SETTLE_MS = 250;

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
  const reports = new TypeReports(root);
  let printed = "";
  let later: NodeJS.Timeout | undefined;
  createInterface({ input: child.stdout }).on("line", (line) => {
    const report = reports.add(line);
    if (report === null) return;
    // An edit of functions also changes `_generated.ts`, which is compiled right after it.
    clearTimeout(later);
    later = setTimeout(() => {
      if (report === printed) return;
      printed = report;
      process.stderr.write(`${report || "No type errors left"}\n`);
    }, SETTLE_MS);
  });
  return { pid: child.pid, [Symbol.dispose]: () => void child.kill() };
}

/**
 * Lowers the priority: the check takes several seconds of CPU at the start, when the server needs it as well. Not to the lowest,
 * with which a report takes minutes while the machine is busy.
 */
function behindTheServer(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // Lowering the priority may not be permitted.
  }
}
