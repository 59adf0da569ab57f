/** Names of the platform-specific packages of the image library. */
import { join } from "node:path";
import { projectDir } from "./payload.ts";

/** Lock file names of sharp's native packages for one platform, glibc only. */
const SHARP = /^@img\/sharp-(?:libvips-)?(?:linux|darwin|win32)-(?:x64|arm64)@/;

/** Lock file names of the native packages for all platforms. */
export async function nativeIds(): Promise<string[]> {
  const { npm } = JSON.parse(await Deno.readTextFile(join(projectDir, "deno.lock"))) as {
    readonly npm: Readonly<Record<string, unknown>>;
  };
  return Object.keys(npm).filter((id) => SHARP.test(id));
}
