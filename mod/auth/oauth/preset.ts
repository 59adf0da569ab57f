/** What a preset is: the settings it takes, and the provider it makes of them. */
import { z } from "zod";
import type { BoundedFetch } from "../outgoing/bounded_fetch.ts";
import { boundedFetch, isThisMachine } from "../outgoing/bounded_fetch.ts";
import type { Provider } from "./provider.ts";

/** What every preset gets. */
export interface PresetParts {
  readonly now: () => number;
  /** A fetch that reaches the hosts of these URLs, and hosts named besides. */
  readonly fetchFrom: (urls: readonly string[], hosts?: readonly string[]) => BoundedFetch;
}

export interface Preset<Settings extends z.ZodType = z.ZodType> {
  /** `secret` reads a value that does not stand in the file itself. */
  readonly settings: (secret: z.ZodType<string>) => Settings;
  readonly open: (settings: z.output<Settings>, parts: PresetParts) => Provider;
  /** Whether its providers send browsers back with a form. */
  readonly formPost?: boolean;
}

/** Keeps the types of a preset's settings together. */
export function preset<Settings extends z.ZodType>(parts: Preset<Settings>): Preset<Settings> {
  return parts;
}

/** The parts of presets, over this fetch. */
export function presetParts(
  { now, fetch, requestMs }: {
    readonly now: () => number;
    readonly fetch?: typeof globalThis.fetch;
    readonly requestMs?: number;
  },
): PresetParts {
  return {
    now,
    fetchFrom: (urls, hosts = []) =>
      boundedFetch({
        hosts: new Set([...urls.map((url) => new URL(url).host), ...hosts]),
        ...(fetch && { fetch }),
        ...(requestMs !== undefined && { requestMs }),
      }),
  };
}

/** An address of a provider: https, or on this machine. */
export const endpoint: z.ZodType<string> = z.string().refine((text) => {
  const url = URL.parse(text);
  return url !== null && url.username === "" && url.hash === "" &&
    (url.protocol === "https:" || (url.protocol === "http:" && isThisMachine(url)));
}, "expected an https address");

/** A host, with its port unless that is 443. */
export const host: z.ZodType<string> = z.string().regex(
  /^[a-z0-9.-]+(?::\d{1,5})?$/,
  "expected a host such as id.example.com",
);

const shortText = z.string().min(1).max(500);

/** What an app has at every provider. */
export function appSettings(secret: z.ZodType<string>) {
  return {
    clientId: shortText,
    clientSecret: secret,
    linkByEmail: z.boolean().default(true),
  };
}
