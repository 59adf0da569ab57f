/** Formats numbers, sizes and times for display. */
export { duration, size, tenths } from "../../../mod/kit/units.ts";

const numbers = new Intl.NumberFormat();
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });

export const count = (value: number): string => numbers.format(value);

/** Returns a count with its noun, such as "2 rows". The plural defaults to the singular plus "s". */
export const countOf = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

const STEPS = [[86_400_000, "day"], [3_600_000, "hour"], [60_000, "minute"], [1_000, "second"]] as const;

function ago(at: number): string {
  const distance = at - Date.now();
  const [ms, unit] = STEPS.find(([ms]) => Math.abs(distance) >= ms) ?? STEPS[3];
  return relative.format(Math.trunc(distance / ms), unit);
}

const padded = (value: number, digits = 2): string => String(value).padStart(digits, "0");

/** Formats a date in the viewer's time zone, such as `2026-11-28`. */
export const dayText = (date: Date): string =>
  `${padded(date.getFullYear(), 4)}-${padded(date.getMonth() + 1)}-${padded(date.getDate())}`;

/** Formats a time in the viewer's time zone, such as `2026-11-28 09:30:00`: the only format of the dashboard. */
export function timeText(at: number): string {
  const date = new Date(at);
  return `${dayText(date)} ${minuteText(date)}:${padded(date.getSeconds())}`;
}

/** Formats a time of day, such as `09:30`. */
export const minuteText = (date: Date): string => `${padded(date.getHours())}:${padded(date.getMinutes())}`;

/** Time of day with milliseconds, preceded by the date unless it is today. */
function clockText(at: number): string {
  const date = new Date(at);
  const text = `${timeText(at)}.${padded(date.getMilliseconds(), 3)}`;
  return dayText(date) === dayText(new Date()) ? text.slice(text.indexOf(" ") + 1) : text;
}

/** Formats a time for a date picker (`datetime-local`), in the viewer's time zone; empty for times without a date. */
export function pickerText(at: number): string {
  return Number.isNaN(new Date(at).getTime()) ? "" : timeText(at).replace(" ", "T");
}

/** Formats a time in UTC, for tooltips. */
export function utcText(at: number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  return `${date.toISOString().replace("T", " ").replace("Z", "")} UTC`;
}

/** A time in the viewer's time zone, with UTC as its tooltip. */
export function Time({ at, as = "full" }: { readonly at: number; readonly as?: "full" | "ago" | "clock" }) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return <span>–</span>;
  return (
    <time
      dateTime={date.toISOString()}
      title={as === "ago" ? `${timeText(at)}, ${utcText(at)}` : utcText(at)}
    >
      {as === "ago" ? ago(at) : as === "clock" ? clockText(at) : timeText(at)}
    </time>
  );
}

/** An email address, which can break after the @, or another name. */
export function BreakableName({ text }: { readonly text: string }) {
  const end = text.indexOf("@") + 1;
  return (
    <>
      {text.slice(0, end)}
      <wbr />
      {text.slice(end)}
    </>
  );
}
