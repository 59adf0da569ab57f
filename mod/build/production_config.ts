/**
 * Reduces the project's configuration to what the server needs on this platform. Deno fetches every package named in
 * `deno.json` or the lock file, whether it is used or not.
 */

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
  const kept = Object.keys(specifiers);
  return {
    project: JSON.stringify({
      ...whole,
      imports: filtered(whole.imports, (address) =>
        !address.startsWith("npm:") ||
        kept.some((specifier) => address === specifier || address.startsWith(`${specifier}/`))),
    }),
    lock: JSON.stringify({
      ...locked,
      specifiers,
      npm: Object.fromEntries(
        Object.entries(locked.npm).filter(([id]) => ids.has(id)).map((
          [id, entry],
        ) => [id, inPart(entry, ids)]),
      ),
      workspace: { dependencies: locked.workspace.dependencies.filter((name) => kept.includes(name)) },
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
