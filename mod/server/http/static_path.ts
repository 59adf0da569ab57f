/** Maps URL paths to files of a static folder. */

/**
 * Returns the decoded names of the folders and the file in a URL path, or `null` if it cannot name a servable file: `..`,
 * hidden files (except `/.well-known/`), encoded slashes, control characters, bad encoding, empty names. A trailing slash
 * yields an empty last name.
 */
export function staticPathNames(pathname: string): readonly string[] | null {
  if (!pathname.startsWith("/")) return null;
  const names: string[] = [];
  const parts = pathname.slice(1).split("/");
  for (const [position, part] of parts.entries()) {
    let name: string;
    try {
      name = decodeURIComponent(part);
    } catch {
      return null;
    }
    const last = position === parts.length - 1;
    if (name === "" ? !last : !isPlainName(name, position)) return null;
    names.push(name);
  }
  return names;
}

/** Whether a name at this depth of the folder may be served. */
export function isPlainName(name: string, position: number): boolean {
  // deno-lint-ignore no-control-regex -- rejects control characters
  if (/[\x00-\x1f\x7f/\\:]/.test(name) || name.length > 255) return false;
  return !name.startsWith(".") || (position === 0 && name === ".well-known");
}
