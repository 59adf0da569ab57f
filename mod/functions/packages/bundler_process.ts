/** Runs the bundler in a child process with limits, and reads and writes the source maps at the end of its output. */
import { fileURLToPath } from "node:url";
import { packageLimits } from "../limits.ts";
import { BundleFailure } from "./bundle_errors.ts";

const CPU_SECONDS_MAX = 120;
const MS_MAX = 120_000;
const MEMORY_KIB_MAX = 4 * 1024 * 1024;
/** Limits the bundler (memory: not on macOS) and core dumps, which contain code. `exec`: a timeout ends the bundler. */
const SHELL_SCRIPT = `ulimit -c 0; ulimit -t "$0"; ulimit -d ${MEMORY_KIB_MAX} 2>/dev/null; exec "$@"`;
const MAP_MARK = "//# sourceMappingURL=data:application/json;base64,";

export interface BundlerRun {
  readonly flags: readonly string[];
  readonly input: string;
  /** Folder in which it runs. */
  readonly folder: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs the bundler. Ends it after a while. @throws BundleFailure if its output is too large. */
export async function runBundler(
  { flags, input, folder, env = {} }: BundlerRun,
): Promise<{ readonly ok: boolean; readonly output: string; readonly report: string }> {
  const child = new Deno.Command("sh", {
    args: ["-c", SHELL_SCRIPT, String(CPU_SECONDS_MAX), bundlerPath(), ...flags],
    cwd: folder,
    clearEnv: true,
    env,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const end = () => {
    try {
      child.kill("SIGKILL");
    } catch {
      // It has ended.
    }
  };
  const late = setTimeout(end, MS_MAX);
  const writer = child.stdin.getWriter();
  // A bundler that has ended reports why.
  const sent = writer.write(new TextEncoder().encode(input)).then(() => writer.close()).catch(() => {});
  try {
    const [output, report, { success }] = await Promise.all([
      readBounded(child.stdout),
      readBounded(child.stderr),
      child.status,
      sent,
    ]);
    return { ok: success, output, report };
  } finally {
    clearTimeout(late);
    end();
  }
}

/** The bundler's program for this platform, from the same cache as all packages. */
function bundlerPath(): string {
  const [, registry = "", version = ""] = /^(.*)\/esbuild\/([^/]+)\/lib\//.exec(
    fileURLToPath(import.meta.resolve("esbuild")),
  ) ?? [];
  const machine = `${Deno.build.os}-${Deno.build.arch === "aarch64" ? "arm64" : "x64"}`;
  return `${registry}/@esbuild/${machine}/${version}/bin/esbuild`;
}

async function readBounded(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of stream) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length > packageLimits.bundleBytesMax) {
      throw new BundleFailure(
        `The app and its packages have more than ${packageLimits.bundleBytesMax} bytes of code`,
      );
    }
  }
  return text + decoder.decode();
}

export interface SourceMap {
  readonly sources: readonly string[];
  readonly mappings: string;
}

/** Splits the bundler's output into code and source map. */
export function splitMap(output: string): { readonly code: string; readonly map: SourceMap } {
  const at = output.lastIndexOf(MAP_MARK);
  const bytes = Uint8Array.fromBase64(output.slice(at + MAP_MARK.length).trim());
  return { code: output.slice(0, at), map: JSON.parse(new TextDecoder().decode(bytes)) as SourceMap };
}

/** Appends a source map to code. */
export function withMap(code: string, map: SourceMap): string {
  return `${code}${MAP_MARK}${new TextEncoder().encode(JSON.stringify(map)).toBase64()}\n`;
}
