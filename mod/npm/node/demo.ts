/** `syncline demo`: the chat, on data that is removed at the end. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ended, openRuntime, startDeno } from "./runtime.ts";

/** Serves it until a signal. `args` are options of `serve`. */
export async function demo(args: readonly string[]): Promise<number> {
  const runtime = openRuntime();
  // Without functions in the working folder the server brings its example.
  const cwd = mkdtempSync(join(tmpdir(), "syncline-demo-"));
  try {
    return await ended(
      startDeno(runtime, { set: "serve", args: ["serve", ...args], cwd, stdio: "inherit" }),
    );
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}
