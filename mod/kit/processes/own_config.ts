/** The configuration that processes of this program run with: in a clone one that names no more than serving needs. */
import { fileURLToPath } from "node:url";

const root = new URL("../../../", import.meta.url);

/** Its path. */
export function ownConfig(): string {
  const serving = fileURLToPath(new URL("deno.serve.json", root));
  return isThere(serving) ? serving : fileURLToPath(new URL("deno.json", root));
}

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
