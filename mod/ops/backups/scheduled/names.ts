/** Names of scheduled backups. The schedule counts and deletes only files with exactly such names. */
import { randomBytes } from "node:crypto";

const NAME = /^scheduled-(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z-[0-9a-f]{8}\.tar\.zst$/;

/** A new name, `scheduled-<UTC time>-<random>.tar.zst`. */
export function scheduledName(now: Date): string {
  const time = now.toISOString().replaceAll(/[-:]|\.\d+/g, "");
  return `scheduled-${time}-${randomBytes(4).toString("hex")}.tar.zst`;
}

/** Returns the start time in a scheduled backup's name, in milliseconds since the epoch; `null` for other names. */
export function scheduledAt(name: string): number | null {
  const [, year, month, day, hours, minutes, seconds] = name.match(NAME) ?? [];
  if (year === undefined) return null;
  const iso = `${year}-${month}-${day}T${hours}:${minutes}:${seconds}.000Z`;
  const at = Date.parse(iso);
  // Reject dates such as February 30, which would roll over.
  return Number.isNaN(at) || new Date(at).toISOString() !== iso ? null : at;
}

/** Returns the time of the newest scheduled backup, or `null`. */
export function newestScheduled(names: Iterable<string>): number | null {
  let newest: number | null = null;
  for (const name of names) {
    const at = scheduledAt(name);
    if (at !== null && (newest === null || at > newest)) newest = at;
  }
  return newest;
}

/** Returns the oldest backups beyond `keep`, never the one just made: the clock may have been set back. */
export function expiredBackups(
  names: readonly string[],
  { keep, justMade }: { readonly keep: number; readonly justMade: string },
): string[] {
  const others = names.filter((name) => scheduledAt(name) !== null && name !== justMade);
  // The names sort in order of time.
  return others.sort().reverse().slice(Math.max(0, keep - 1));
}
