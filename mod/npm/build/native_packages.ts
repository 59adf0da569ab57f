/** Packages with programs for one kind of machine each: npm installs the one that fits, and no other is downloaded. */
import { nativeIds } from "../../build/native_ids.ts";

const PLATFORMS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64", "win32-x64", "win32-arm64"];
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
