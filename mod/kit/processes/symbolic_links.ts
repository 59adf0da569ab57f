/** Symbolic links. */

export interface SymbolicLink {
  /** Path of the new link; must not exist. */
  readonly path: string;
  /** Path the link refers to; need not exist. */
  readonly target: string;
}

/** Links each pair of arguments. Never replaces a file. */
const SCRIPT = `while [ "$#" -gt 0 ]; do ln -s -n "$1" "$2" || exit; shift 2; done`;
/** Bounds the length of the command line. */
const LINKS_AT_ONCE = 64;

/**
 * Creates links; throws if one fails. The runtime requires full read and write permission for links, so processes
 * without it use the shell.
 */
export async function makeLinks(links: readonly SymbolicLink[]): Promise<void> {
  for (let from = 0; from < links.length; from += LINKS_AT_ONCE) {
    const some = links.slice(from, from + LINKS_AT_ONCE);
    if (await hasFullFileAccess()) { for (const { target, path } of some) await Deno.symlink(target, path); }
    else await makeLinksInShell(some);
  }
}

async function hasFullFileAccess(): Promise<boolean> {
  const states = await Promise.all(
    (["read", "write"] as const).map((name) => Deno.permissions.query({ name })),
  );
  return states.every(({ state }) => state === "granted");
}

async function makeLinksInShell(links: readonly SymbolicLink[]): Promise<void> {
  const { success, stderr } = await new Deno.Command("sh", {
    args: ["-c", SCRIPT, "sh", ...links.flatMap(({ target, path }) => [target, path])],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr).trim() || "A link could not be made");
}
