/** Browser and operating system in words, from a `User-Agent`. For people who recognize their sessions, not to identify anyone. */

/** A device as its user knows it. */
export interface Device {
  /** Browser or program, such as `Firefox`; `null` if unknown. */
  readonly browser: string | null;
  /** Operating system or kind of device, such as `Windows` or `iPhone`; `null` if unknown. */
  readonly system: string | null;
}

/** Returns a device as one string, such as `Firefox on Linux`. */
export function deviceName({ browser, system }: Device): string {
  return browser !== null && system !== null
    ? `${browser} on ${system}`
    : browser ?? system ?? "Unknown device";
}

/** The first match counts: browsers that are derived from another one name both. */
const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, "Edge"],
  [/\bOPR\/|\bOpera\b|\bOPT\//, "Opera"],
  [/\bSamsungBrowser\//, "Samsung Internet"],
  [/\bVivaldi\//, "Vivaldi"],
  [/\b(?:Firefox|FxiOS)\//, "Firefox"],
  [/\b(?:Chrome|HeadlessChrome|Chromium|CriOS)\//, "Chrome"],
  [/\bVersion\/\S+ .*\bSafari\//, "Safari"],
  [/\bDeno\//, "Deno"],
  [/\bBun\//, "Bun"],
  [/^node\b|\bNode\.js\b|\bundici\b/, "Node.js"],
  [/^curl\//, "curl"],
];

const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bMac OS X\b|\bMacintosh\b/, "macOS"],
  [/\bLinux\b/, "Linux"],
];

/** Returns the device that a `User-Agent` names. Versions and models are ignored. */
export function deviceOf(userAgent: string | null): Device {
  const find = (words: typeof BROWSERS) =>
    words.find(([pattern]) => pattern.test(userAgent ?? ""))?.[1] ?? null;
  return { browser: find(BROWSERS), system: find(SYSTEMS) };
}
