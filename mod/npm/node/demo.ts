/** `syncline demo`: serves the chat example with temporary data. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ended, openRuntime, startDeno } from "./runtime.ts";

/** Serves the example until a signal arrives. `args` are options of `serve`. */
export async function demo(args: readonly string[]): Promise<number> {
  const runtime = openRuntime();
  const cwd = mkdtempSync(join(tmpdir(), "syncline-demo-"));
  try {
    return await ended(
      startDeno(runtime, { set: "serve", args: ["serve", "--demo", ...args], cwd, stdio: "inherit" }),
    );
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}
