/** Quarantine of unusable logs: kept beside the log, at most one, for the log's retention time. */

/** Files of a SQLite database, including the write-ahead log. */
const FILES = ["", "-wal", "-shm"];

/** Quarantines a log, replacing an earlier one. Returns its new path. */
export function quarantine(path: string, now: number): string {
  const target = quarantinePath(path);
  if (!exists(path)) return target;
  for (const end of FILES) {
    if (exists(path + end)) Deno.renameSync(path + end, target + end);
    else if (exists(target + end)) Deno.removeSync(target + end);
  }
  // Its retention time starts now.
  Deno.utimeSync(target, now / 1_000, now / 1_000);
  return target;
}

export function removeQuarantined(path: string, before: number): void {
  const target = quarantinePath(path);
  try {
    const { isFile, mtime } = Deno.lstatSync(target);
    if (!isFile || mtime === null || mtime.getTime() >= before) return;
    for (const end of FILES.toReversed()) if (exists(target + end)) Deno.removeSync(target + end);
  } catch {
    // Usually there is none; failures are ignored.
  }
}

export function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound);
  }
}

function quarantinePath(path: string): string {
  return `${path}.unusable`;
}
