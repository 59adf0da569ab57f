/** Platform-specific packages: npm downloads only those for the current platform. */
import { nativeIds } from "../../build/payload.ts";

const PLATFORMS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64", "win32-x64", "win32-arm64"];
/** Names and versions of the Deno runtime, the image library and the bundler. */
export async function nativePackages(): Promise<Record<string, string>> {
  const runtime = PLATFORMS.map((platform) => [
    `@deno/${platform}${platform.startsWith("linux") ? "-glibc" : ""}`,
    Deno.version.deno,
  ]);
  const native = (await nativeIds()).filter((id) => !id.includes("libvips")).map((id) => {
    const at = id.lastIndexOf("@");
    return [id.slice(0, at), id.slice(at + 1)];
  });
  return Object.fromEntries([...runtime, ...native]);
}
