/** The configuration that processes of this program run with: in a clone one that names no more than serving needs. */
import { fileURLToPath } from "node:url";
import { programRoot } from "./program_root.ts";

/** Its path. */
export function ownConfig(): string {
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
