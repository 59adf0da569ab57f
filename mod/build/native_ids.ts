/** Packages with programs for one kind of machine each, which the image library is made of. */
import { join } from "node:path";
import { projectDir } from "./payload.ts";

/** Names in the lock of what `sharp` is made of; those for other C libraries than glibc are left out. */
const SHARP = /^@img\/sharp-(?:libvips-)?(?:linux|darwin|win32)-(?:x64|arm64)@/;

/** Names in the lock of the native packages of all kinds of machines. */
export async function nativeIds(): Promise<string[]> {
  const { npm } = JSON.parse(await Deno.readTextFile(join(projectDir, "deno.lock"))) as {
    readonly npm: Readonly<Record<string, unknown>>;
  };
  return Object.keys(npm).filter((id) => SHARP.test(id));
}
