/** Names of scheduled backups: only files called exactly so are ever counted or deleted by the schedule. */
import { randomBytes } from "node:crypto";

const NAME = /^scheduled-(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z-[0-9a-f]{8}\.tar\.zst$/;

/** A new name, `scheduled-<UTC time>-<random>.tar.zst`. */
export function scheduledName(now: Date): string {
  const time = now.toISOString().replaceAll(/[-:]|\.\d+/g, "");
  return `scheduled-${time}-${randomBytes(4).toString("hex")}.tar.zst`;
}

/** When a scheduled backup of this name was begun, in milliseconds since the epoch; `null` for all other names. */
export function scheduledAt(name: string): number | null {
  const [, year, month, day, hours, minutes, seconds] = name.match(NAME) ?? [];
  if (year === undefined) return null;
  const iso = `${year}-${month}-${day}T${hours}:${minutes}:${seconds}.000Z`;
  const at = Date.parse(iso);
  // Days that no month has would be read as those of the next one.
  return Number.isNaN(at) || new Date(at).toISOString() !== iso ? null : at;
}

/** The newest scheduled backup among some names; `null` when there is none. */
export function newestScheduled(names: Iterable<string>): number | null {
  let newest: number | null = null;
  for (const name of names) {
    const at = scheduledAt(name);
    if (at !== null && (newest === null || at > newest)) newest = at;
  }
  return newest;
}

/**
 * The scheduled backups to be deleted, so that `keep` are left: the oldest by their names, and never the one just made,
 * which is not the newest by its name where the clock was set back.
 */
export function superfluous(
  names: readonly string[],
  { keep, justMade }: { readonly keep: number; readonly justMade: string },
): string[] {
  const others = names.filter((name) => scheduledAt(name) !== null && name !== justMade);
  // Equal lengths, and times from the largest unit to the smallest: the order of the texts is that of the times.
  return others.sort().reverse().slice(Math.max(0, keep - 1));
}
