/** Times of day at which no alerts are sent. */

export interface QuietHours {
  /** Minutes since midnight; `from` may be later than `to`. */
  readonly from: number;
  readonly to: number;
  /** IANA name, such as `Europe/Berlin`. */
  readonly timeZone: string;
}

const TEXT = /^(\d{2}):(\d{2})-(\d{2}):(\d{2})(?: +(\S+))?$/;

/** Parses `22:00-07:00 Europe/Berlin`; UTC without a time zone. `null` if invalid. */
export function parseQuietHours(text: string): QuietHours | null {
  const [, ...parts] = TEXT.exec(text.trim()) ?? [];
  const [fromHour = NaN, fromMinute = NaN, toHour = NaN, toMinute = NaN] = parts.slice(0, 4).map(Number);
  const timeZone = parts[4] ?? "UTC";
  if (!(fromHour < 24 && toHour < 24 && fromMinute < 60 && toMinute < 60)) return null;
  const hours = { from: fromHour * 60 + fromMinute, to: toHour * 60 + toMinute, timeZone };
  try {
    isQuiet(hours, 0);
  } catch {
    // An unknown time zone.
    return null;
  }
  return hours.from === hours.to ? null : hours;
}

export function isQuiet({ from, to, timeZone }: QuietHours, at: number): boolean {
  const format = new Intl.DateTimeFormat("en", {
    timeZone,
    hour: "numeric",
    minute: "numeric",
    hourCycle: "h23",
  });
  const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const minute = (parts.get("hour") ?? 0) * 60 + (parts.get("minute") ?? 0);
  return from < to ? minute >= from && minute < to : minute >= from || minute < to;
}
