/**
 * The Deno configuration of the server's processes. In a clone it is `deno.serve.json`, which lists only the packages
 * that serving needs.
 */
import { fileURLToPath } from "node:url";
import { programRoot } from "./program_root.ts";

/** Returns its path. */
export function programConfig(): string {
  const serving = fileURLToPath(new URL("deno.serve.json", programRoot));
  return isThere(serving) ? serving : fileURLToPath(new URL("deno.json", programRoot));
}

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
