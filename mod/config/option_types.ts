/** Parsers for option values. Each turns the text of a flag or environment variable into a value. */

/** An invalid option value. The message completes "Invalid value for --flag: ". */
export class OptionValueError extends Error {
  override readonly name = "OptionValueError";
}

/** Parses a switch set by an environment variable. */
export function parseSwitch(text: string): boolean {
  switch (text.trim().toLowerCase()) {
    case "1":
    case "true":
    case "yes":
    case "on":
      return true;
    case "":
    case "0":
    case "false":
    case "no":
    case "off":
      return false;
    default:
      throw new OptionValueError(`expected true or false, received "${text}"`);
  }
}

/** Returns a parser that accepts one of the given words. */
export function parseChoice<const Choice extends string>(
  choices: readonly Choice[],
): (text: string) => Choice {
  return (text) => {
    const found = choices.find((choice) => choice === text.trim());
    if (found === undefined) {
      throw new OptionValueError(`expected one of ${choices.join(", ")}, received "${text}"`);
    }
    return found;
  };
}

/** Parses a TCP port; 0 means any free port. */
export function parsePort(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535) {
    throw new OptionValueError(`expected a port from 0 to 65535, received "${text}"`);
  }
  return Number(text);
}

/** Parses an exit code from 1 to 255. A supervisor would not restart after 0. */
export function parseExitCode(text: string): number {
  if (!/^\d{1,3}$/.test(text) || Number(text) < 1 || Number(text) > 255) {
    throw new OptionValueError(`expected an exit code from 1 to 255, received "${text}"`);
  }
  return Number(text);
}

/** Upper bound of `--workers`. More workers than cores only causes a warning. */
const WORKERS_MAX = 64;

export function parseWorkers(text: string): number {
  if (!/^\d{1,2}$/.test(text) || Number(text) < 1 || Number(text) > WORKERS_MAX) {
    throw new OptionValueError(`expected a count from 1 to ${WORKERS_MAX}, received "${text}"`);
  }
  return Number(text);
}

/** Parses an address to listen on: a host name or IP address without scheme, port or path. */
export function parseHost(text: string): string {
  const host = text.replace(/^\[(.*)\]$/, "$1");
  if (!/^[A-Za-z0-9.:_%-]+$/.test(host) || /^[^:]*:\d+$/.test(host)) {
    throw new OptionValueError(
      `expected an address such as 127.0.0.1, 0.0.0.0 or localhost, received "${text}"`,
    );
  }
  return host;
}

const durationUnits = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const;

/** Parses a duration with the unit `ms`, `s`, `m`, `h` or `d` into milliseconds. */
export function parseDuration(text: string): number {
  const [, amount = "", unit = ""] = text.trim().match(/^(\d{1,9})(ms|s|m|h|d)$/) ?? [];
  const unitMs = durationUnits[unit as keyof typeof durationUnits];
  if (unitMs === undefined || Number(amount) === 0) {
    throw new OptionValueError(`expected a duration such as 30s, 15m, 12h or 7d, received "${text}"`);
  }
  return Number(amount) * unitMs;
}

/** Returns a parser for durations between two bounds, in milliseconds. */
export function parseDurationWithin(
  { least, most }: { readonly least: number; readonly most: number },
): (text: string) => number {
  return (text) => {
    const ms = parseDuration(text);
    if (ms >= least && ms <= most) return ms;
    const bounds = `${shownDuration(least)} to ${shownDuration(most)}`;
    throw new OptionValueError(`expected a duration from ${bounds}, received "${text}"`);
  };
}

/** Formats a duration as an option value, in the largest unit without a fraction. */
export function shownDuration(ms: number): string {
  const [unit, unitMs] = Object.entries(durationUnits).find(([, unitMs]) => ms % unitMs === 0) ?? ["ms", 1];
  return `${ms / unitMs}${unit}`;
}

const sizeUnits: Readonly<Record<string, number>> = {
  "": 1,
  KB: 1000,
  MB: 1000 ** 2,
  GB: 1000 ** 3,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};

/** Parses a size in bytes, optionally with a unit: `KiB`, `MiB`, `GiB`, `KB`, `MB` or `GB`. */
export function parseBytes(text: string): number {
  const [, amount = "", unit = ""] = text.trim().match(/^(\d{1,12})(|[KMG]i?B)$/) ?? [];
  const bytes = Number(amount) * (sizeUnits[unit] ?? 0);
  if (amount === "" || bytes === 0 || !Number.isSafeInteger(bytes)) {
    throw new OptionValueError(`expected a size such as 500KiB, 100MiB or 2GiB, received "${text}"`);
  }
  return bytes;
}

/** Parses `s3://bucket/prefix`. The returned prefix is empty or ends with a slash. */
export function parseBucket(text: string): { readonly bucket: string; readonly prefix: string } {
  const [, bucket, path = ""] = text.trim().match(/^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/) ??
    [];
  const parts = path.replace(/\/$/, "").split("/");
  if (bucket === undefined || (path !== "" && parts.some((part) => !/^[A-Za-z0-9!_.*'()-]+$/.test(part)))) {
    throw new OptionValueError(`expected a location such as s3://bucket/prefix, received "${text}"`);
  }
  return { bucket, prefix: path === "" ? "" : `${parts.join("/")}/` };
}

/** Parses an http or https URL without a path into its origin. */
export function parseServiceUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.pathname !== "/" || url.search || url.hash) {
    throw new OptionValueError(`expected a URL such as https://s3.example.com, received "${text}"`);
  }
  return url.origin;
}

/** Parses any http or https URL without credentials. */
export function parseWebUrl(text: string): string {
  const url = URL.parse(text.trim());
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw new OptionValueError(`expected a URL such as https://example.com/ping, received "${text}"`);
  }
  return url.href;
}

export function parseText(text: string): string {
  if (text.trim() === "") throw new OptionValueError("expected a non-empty value");
  return text.trim();
}

/** Parses a bearer token (RFC 6750). The error does not repeat it. */
export function parseBearerToken(text: string): string {
  const token = text.trim();
  if (!/^[A-Za-z0-9._~+/-]+=*$/.test(token)) {
    throw new OptionValueError("expected a token that contains only letters, digits and . _ ~ + / -");
  }
  return token;
}

/** Parses the public URL of a server: an http or https origin without a path. */
export function parsePublicUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.pathname !== "/" || url.search || url.hash) {
    throw new OptionValueError(`expected a URL such as https://api.example.com, received "${text}"`);
  }
  return url.origin;
}

/** Returns a parser for comma-separated values; `check` throws an error for an invalid one. */
export function parseCheckedList(check: (value: string) => unknown): (text: string) => readonly string[] {
  return (text) => {
    const values = text.split(",").map((value) => value.trim()).filter((value) => value !== "");
    for (const value of values) {
      try {
        check(value);
      } catch (error) {
        throw new OptionValueError(error instanceof Error ? error.message : String(error));
      }
    }
    return values;
  };
}

/** Parses an absolute or relative path of a file or folder. */
export function parsePath(text: string): string {
  if (text.trim() === "" || text.includes("\0")) {
    throw new OptionValueError(`expected a path, received "${text}"`);
  }
  return text;
}

/** Parses comma-separated hosts with optional ports, in the format of Deno's `--allow-net`. */
export function parseNetList(text: string): readonly string[] {
  const hosts = text.split(",").map((host) => host.trim()).filter((host) => host !== "");
  for (const host of hosts) {
    if (!/^(\*\.)?[A-Za-z0-9._-]+(:\d{1,5})?$|^\[[0-9A-Fa-f:.]+\](:\d{1,5})?$/.test(host)) {
      throw new OptionValueError(
        `expected hosts separated by commas, such as "api.example.com,127.0.0.1:8080", received "${host}"`,
      );
    }
  }
  return hosts;
}
