/** Links in the file system. */

export interface SymbolicLink {
  /** Where the link is made: nothing may be there. */
  readonly path: string;
  /** What it says, which need not be there. */
  readonly target: string;
}

/** Makes each of its pairs of arguments; what is there already is not replaced. */
const SCRIPT = `while [ "$#" -gt 0 ]; do ln -s -n "$1" "$2" || exit; shift 2; done`;
/** Links made at once, so that the command line is never too long. */
const LINKS_AT_ONCE = 64;

/**
 * Makes links. Throws when one of them could not be made. The runtime lets only those make links who may read and write
 * everything: in a process that may not, the shell does it.
 */
export async function makeLinks(links: readonly SymbolicLink[]): Promise<void> {
  for (let from = 0; from < links.length; from += LINKS_AT_ONCE) {
    const some = links.slice(from, from + LINKS_AT_ONCE);
    if (await mayAll()) { for (const { target, path } of some) await Deno.symlink(target, path); }
    else await byShell(some);
  }
}

async function mayAll(): Promise<boolean> {
  const states = await Promise.all(
    (["read", "write"] as const).map((name) => Deno.permissions.query({ name })),
  );
  return states.every(({ state }) => state === "granted");
}

async function byShell(links: readonly SymbolicLink[]): Promise<void> {
  const { success, stderr } = await new Deno.Command("sh", {
    args: ["-c", SCRIPT, "sh", ...links.flatMap(({ target, path }) => [target, path])],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr).trim() || "A link could not be made");
}
