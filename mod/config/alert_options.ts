/** Parsers of the options of alerts. */
import { normalizedEmail } from "../auth/mod.ts";
import {
  type AlertThresholds,
  parseQuietHours as quietHoursOf,
  type QuietHours,
  type Webhook,
  webhookFormats,
} from "../ops/alerts/mod.ts";
import { OptionValueError, parseDuration } from "./option_types.ts";

function listOf<Value>(text: string, parse: (part: string) => Value): readonly Value[] {
  return text.split(",").map((part) => part.trim()).filter((part) => part !== "").map(parse);
}

export function parseMailAddresses(text: string): readonly string[] {
  return listOf(text, (part) => {
    const address = normalizedEmail(part);
    if (address === null) throw new OptionValueError(`expected email addresses, received "${part}"`);
    return address;
  });
}

/** Formats of well-known hosts. */
const HOSTS: Readonly<Record<string, Webhook["format"]>> = {
  "hooks.slack.com": "slack",
  "discord.com": "discord",
  "discordapp.com": "discord",
};

/** Parses URLs, each optionally with its format, such as `slack:https://chat.example.com/hooks/1`. */
export function parseWebhooks(text: string): readonly Webhook[] {
  return listOf(text, (part) => {
    const [, prefix, url = ""] = /^(?:([a-z]+):)?(https?:.*)$/.exec(part) ?? [];
    const parsed = URL.parse(url);
    const format = prefix === undefined
      ? HOSTS[parsed?.hostname ?? ""] ?? "json"
      : webhookFormats.find((format) => format === prefix);
    if (parsed === null || format === undefined) {
      // The text may contain a secret.
      throw new OptionValueError(
        `expected URLs such as https://example.com/hook, each optionally after ${
          webhookFormats.map((format) => `${format}:`).join(", ")
        }`,
      );
    }
    return { format, url: parsed.href };
  });
}

/** Parses times such as `22:00-07:00 Europe/Berlin`. */
export function parseQuietHours(text: string): QuietHours {
  const hours = quietHoursOf(text);
  if (hours === null) {
    throw new OptionValueError(`expected times such as 22:00-07:00 Europe/Berlin, received "${text}"`);
  }
  return hours;
}

const THRESHOLDS = {
  "error-rate": ["errorRate", parseShare],
  "latency": ["latencyMs", parseDuration],
  "backup-age": ["backupAgeMs", parseDuration],
  "lag": ["lagMs", parseDuration],
  "disk-free": ["diskFree", parseShare],
} as const satisfies Record<string, readonly [keyof AlertThresholds, (text: string) => number]>;

/** Parses thresholds such as `error-rate=5%,latency=2s`. */
export function parseThresholds(text: string): Partial<AlertThresholds> {
  return Object.fromEntries(listOf(text, (part) => {
    const [name = "", value = "", ...more] = part.split("=");
    if (!Object.hasOwn(THRESHOLDS, name) || value === "" || more.length > 0) {
      const names = Object.keys(THRESHOLDS).join(", ");
      throw new OptionValueError(`expected name=value with a name of ${names}, received "${part}"`);
    }
    const [field, parse] = THRESHOLDS[name as keyof typeof THRESHOLDS];
    return [field, parse(value)] as const;
  }));
}

function parseShare(text: string): number {
  const [, percent] = /^(\d{1,3}(?:\.\d{1,3})?)%$/.exec(text.trim()) ?? [];
  if (percent === undefined || Number(percent) > 100) {
    throw new OptionValueError(`expected a percentage such as 5%, received "${text}"`);
  }
  return Number(percent) / 100;
}
