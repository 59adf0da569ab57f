/** A log that cannot be used, out of the way: beside the log, one at most, for as long as runs are kept. */

/** Files that take part in a SQLite database. What has not reached the database itself is in them. */
const FILES = ["", "-wal", "-shm"];

/** Moves a log aside, in the place of one that was there before. Returns where it is now. */
export function moveAside(path: string, now: number): string {
  const aside = asideOf(path);
  if (!exists(path)) return aside;
  for (const end of FILES) {
    if (exists(path + end)) Deno.renameSync(path + end, aside + end);
    else if (exists(aside + end)) Deno.removeSync(aside + end);
  }
  // Its time begins now, whenever it was last written.
  Deno.utimeSync(aside, now / 1_000, now / 1_000);
  return aside;
}

/** Removes what was moved aside before an instant. */
export function forgetAside(path: string, before: number): void {
  const aside = asideOf(path);
  try {
    const { isFile, mtime } = Deno.lstatSync(aside);
    if (!isFile || mtime === null || mtime.getTime() >= before) return;
    for (const end of FILES.toReversed()) if (exists(aside + end)) Deno.removeSync(aside + end);
  } catch {
    // Mostly there is none; one that cannot be removed stays.
  }
}

function asideOf(path: string): string {
  return `${path}.unusable`;
}

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch {
    return false;
  }
}
