/** Packages with programs for one kind of machine each: npm installs the one that fits, and no other is downloaded. */
import { join } from "node:path";
import { projectDir } from "./copy_tree.ts";

const PLATFORMS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64", "win32-x64", "win32-arm64"];
/** Names in the lock of what `sharp` is made of; those for other C libraries than glibc are left out. */
const SHARP = /^@img\/sharp-(?:libvips-)?(?:linux|darwin|win32)-(?:x64|arm64)@/;

/** Names in the lock of the native packages of all kinds of machines. */
export async function nativeIds(): Promise<string[]> {
  const { npm } = JSON.parse(await Deno.readTextFile(join(projectDir, "deno.lock"))) as {
    readonly npm: Readonly<Record<string, unknown>>;
  };
  return Object.keys(npm).filter((id) => SHARP.test(id));
}

/** Names and versions: the runtime this is built with, and the image library's, which brings its own libraries. */
export async function nativePackages(): Promise<Record<string, string>> {
  const runtime = PLATFORMS.map((platform) => [
    `@deno/${platform}${platform.startsWith("linux") ? "-glibc" : ""}`,
    Deno.version.deno,
  ]);
  const images = (await nativeIds()).filter((id) => !id.includes("libvips")).map((id) => {
    const at = id.lastIndexOf("@");
    return [id.slice(0, at), id.slice(at + 1)];
  });
  return Object.fromEntries([...runtime, ...images]);
}
