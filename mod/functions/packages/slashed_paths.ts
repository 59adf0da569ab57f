/** Paths with slashes on every system: Windows takes them too, and what is told of files elsewhere has no others. */

/** A path as the system or a library gave it, with slashes. A backslash is part of a name where it separates nothing. */
export function slashed(path: string, system: string = Deno.build.os): string {
  return system === "windows" ? path.replaceAll("\\", "/") : path;
}

/** What of a path is below a folder that it lies in: `src/a.ts`. The folder may be a root: `/`, `C:/`. */
export function nameBelow(folder: string, path: string): string {
  return path.slice(folder.endsWith("/") ? folder.length : folder.length + 1);
}

/** Whether a path is a folder or below it. */
export function isAtOrBelow(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}

/** Two of these names that are one where a disk does not tell upper from lower case, as on macOS and Windows. */
export function sameOnSomeDisks(names: Iterable<string>): readonly [string, string] | null {
  const seen = new Map<string, string>();
  for (const name of names) {
    const folded = name.normalize("NFC").toLowerCase();
    const other = seen.get(folded);
    if (other !== undefined) return [other, name];
    seen.set(folded, name);
  }
  return null;
}
