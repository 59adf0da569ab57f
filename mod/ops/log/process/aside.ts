/** Quarantine of unusable logs: kept beside the log, at most one, for the log's retention time. */

/** Files of a SQLite database, including the write-ahead log. */
const FILES = ["", "-wal", "-shm"];

/** Quarantines a log, replacing an earlier one. Returns its new path. */
export function quarantine(path: string, now: number): string {
  const aside = quarantinePath(path);
  if (!exists(path)) return aside;
  for (const end of FILES) {
    if (exists(path + end)) Deno.renameSync(path + end, aside + end);
    else if (exists(aside + end)) Deno.removeSync(aside + end);
  }
  // Its retention time starts now.
  Deno.utimeSync(aside, now / 1_000, now / 1_000);
  return aside;
}

/** Removes a log quarantined before an instant. */
export function removeQuarantined(path: string, before: number): void {
  const aside = quarantinePath(path);
  try {
    const { isFile, mtime } = Deno.lstatSync(aside);
    if (!isFile || mtime === null || mtime.getTime() >= before) return;
    for (const end of FILES.toReversed()) if (exists(aside + end)) Deno.removeSync(aside + end);
  } catch {
    // Usually there is none; failures are ignored.
  }
}

function quarantinePath(path: string): string {
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
