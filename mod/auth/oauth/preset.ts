/** A preset: the settings it accepts, and the provider it creates from them. */
import { z } from "zod";
import type { BoundedFetch } from "../outgoing/bounded_fetch.ts";
import { boundedFetch, isThisMachine } from "../outgoing/bounded_fetch.ts";
import type { Provider } from "./provider.ts";

/** Dependencies of every preset. */
export interface PresetParts {
  readonly now: () => number;
  /** Returns a fetch that is restricted to the hosts of these URLs and the additional hosts. */
  readonly fetchFrom: (urls: readonly string[], hosts?: readonly string[]) => BoundedFetch;
}

export interface Preset<Settings extends z.ZodType = z.ZodType> {
  /** `secret` resolves a value that the configuration refers to. */
  readonly settings: (secret: z.ZodType<string>) => Settings;
  readonly open: (settings: z.output<Settings>, parts: PresetParts) => Provider;
  /** Whether its providers respond with a form post. */
  readonly formPost?: boolean;
}

/** Helper for type inference. */
export function preset<Settings extends z.ZodType>(parts: Preset<Settings>): Preset<Settings> {
  return parts;
}

/** Building blocks of presets, based on this fetch. */
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

/** A provider URL: https, or http on this machine. */
export const endpoint: z.ZodType<string> = z.string().refine((text) => {
  const url = URL.parse(text);
  return url !== null && url.username === "" && url.hash === "" &&
    (url.protocol === "https:" || (url.protocol === "http:" && isThisMachine(url)));
}, "expected an https URL");

/** A host, with its port unless it is 443. */
export const host: z.ZodType<string> = z.string().regex(
  /^[a-z0-9.-]+(?::\d{1,5})?$/,
  "expected a host such as id.example.com",
);

const shortText = z.string().min(1).max(500);

/** The client settings at every provider. */
export function appSettings(secret: z.ZodType<string>) {
  return {
    clientId: shortText,
    clientSecret: secret,
    linkByEmail: z.boolean().default(true),
  };
}
