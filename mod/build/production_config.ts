/** The npm packages of a production build, and its deno.json. */

export interface CachedPackage {
  /** The name in `deno.lock`. */
  readonly id: string;
  readonly folder: string;
  /** Path of the package folder relative to the registry folder. */
  readonly subfolder: string;
}

/** Output of `deno info --json`. */
interface ModuleGraph {
  readonly modules: readonly {
    readonly kind?: string;
    readonly npmPackage?: string;
    readonly error?: string;
  }[];
  readonly npmPackages: Readonly<
    Record<
      string,
      {
        readonly name: string;
        readonly version: string;
        readonly dependencies: readonly string[];
        readonly localPath: string;
      }
    >
  >;
}

/** Platform fields of `deno.lock` and package.json. */
interface Platforms {
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
}

type PackageLock = { readonly npm: Readonly<Record<string, Platforms>> };

const OS: Readonly<Record<string, string>> = { darwin: "darwin", linux: "linux", freebsd: "freebsd" };
const CPU: Readonly<Record<string, string>> = { x86_64: "x64", aarch64: "arm64" };

/** Returns the packages used by the modules, with their dependencies. Throws if one is not in the cache. */
export async function neededPackages(
  entries: readonly string[],
  lockFile: string,
): Promise<CachedPackage[]> {
  const lock = JSON.parse(await Deno.readTextFile(lockFile)) as PackageLock;
  const needed = new Map<string, CachedPackage>();
  for (const entry of entries) {
    const { modules, npmPackages } = await moduleGraph(entry);
    const wanted = new Set(modules.flatMap(({ npmPackage }) => npmPackage ?? []));
    for (const id of wanted) {
      const found = npmPackages[id];
      // Packages for other platforms may be missing.
      if (found === undefined || !runsHere(lock.npm[id])) continue;
      const { name, version, dependencies, localPath } = found;
      if (!runsHere(await manifestOf(localPath))) continue;
      needed.set(id, { id, folder: localPath, subfolder: `${name}/${version}` });
      for (const dependency of dependencies) wanted.add(dependency);
    }
  }
  return [...needed.values()];
}

async function moduleGraph(entry: string): Promise<ModuleGraph> {
  const { success, stdout, stderr } = await new Deno.Command("sh", {
    args: ["-c", 'exec "$0" "$@"', Deno.execPath(), "info", "--json", "--frozen", entry],
    env: { NO_COLOR: "1" },
  }).output();
  if (!success) throw new Error(`Cannot list the modules of ${entry}: ${new TextDecoder().decode(stderr)}`);
  const graph = JSON.parse(new TextDecoder().decode(stdout)) as ModuleGraph;
  const fault = graph.modules.find(({ error }) => error !== undefined);
  if (fault !== undefined) throw new Error(`Cannot load a module of ${entry}: ${fault.error}`);
  return graph;
}

async function manifestOf(folder: string): Promise<Platforms> {
  try {
    return JSON.parse(await Deno.readTextFile(`${folder}/package.json`)) as Platforms;
  } catch (error) {
    throw new Error(`The package in ${folder} does not exist: run "deno install" first`, { cause: error });
  }
}

/** Whether a package supports this platform. */
function runsHere({ os, cpu, libc }: Platforms = {}): boolean {
  // On Linux, Deno itself needs glibc.
  return fits(os, OS[Deno.build.os]) && fits(cpu, CPU[Deno.build.arch]) && fits(libc, "glibc");
}

function fits(allowed: readonly string[] | undefined, here: string | undefined): boolean {
  return allowed === undefined || (here !== undefined && allowed.includes(here));
}

interface Project {
  readonly imports: Readonly<Record<string, string>>;
}

interface Lock {
  readonly specifiers: Readonly<Record<string, string>>;
  readonly npm: Readonly<Record<string, LockedPackage>>;
  readonly workspace: { readonly dependencies: readonly string[] };
}

interface LockedPackage {
  readonly optionalDependencies?: readonly string[];
}

/** Keeps the packages named in `ids` (names in the lock file). Returns the contents of `deno.json` and `deno.lock`. */
export function productionConfig(
  { project, lock, ids }: {
    readonly project: string;
    readonly lock: string;
    readonly ids: ReadonlySet<string>;
  },
): { readonly project: string; readonly lock: string } {
  const whole = JSON.parse(project) as Project;
  const locked = JSON.parse(lock) as Lock;
  const specifiers = filtered(
    locked.specifiers,
    (version, specifier) =>
      ids.has(`${specifier.slice("npm:".length, specifier.lastIndexOf("@"))}@${version}`),
  );
  const used = Object.keys(specifiers);
  return {
    project: JSON.stringify({
      ...whole,
      imports: filtered(whole.imports, (address) =>
        !address.startsWith("npm:") ||
        used.some((specifier) => address === specifier || address.startsWith(`${specifier}/`))),
    }),
    lock: JSON.stringify({
      ...locked,
      specifiers,
      npm: Object.fromEntries(
        Object.entries(locked.npm).filter(([id]) => ids.has(id)).map((
          [id, entry],
        ) => [id, inPart(entry, ids)]),
      ),
      workspace: { dependencies: locked.workspace.dependencies.filter((name) => used.includes(name)) },
    }),
  };
}

/** Returns a package without the omitted optional dependencies, which are named with a version if ambiguous. */
function inPart(entry: LockedPackage, ids: ReadonlySet<string>): LockedPackage {
  if (entry.optionalDependencies === undefined) return entry;
  return {
    ...entry,
    optionalDependencies: entry.optionalDependencies.filter((name) =>
      [...ids].some((id) => id === name || id.startsWith(`${name}@`))
    ),
  };
}

function filtered<Value>(
  record: Readonly<Record<string, Value>>,
  keep: (value: Value, key: string) => boolean,
): Record<string, Value> {
  return Object.fromEntries(Object.entries(record).filter(([key, value]) => keep(value, key)));
}
