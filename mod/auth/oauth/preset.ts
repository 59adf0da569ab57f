/** The provider port, and presets: the settings that a preset accepts, and the provider it creates from them. */
import { z } from "zod";
import type { ProvidedIdentity } from "../isolate_functions/identities/identity_rows.ts";
import { type BoundedFetch, boundedFetch, isThisMachine } from "../outgoing/bounded_fetch.ts";

/** Secrets of one sign-in. Not stored: they are derived from the state and the server's key. */
export interface FlowSecrets {
  /** Callback URL of the provider. */
  readonly callback: string;
  readonly state: string;
  readonly codeVerifier: string;
  readonly nonce: string;
}

/** Parameters the browser returned with. */
export interface Return extends FlowSecrets {
  readonly parameters: URLSearchParams;
}

/** The identity that returned, with additional claims. */
export interface Identified {
  readonly identity: ProvidedIdentity;
  /** Raw claims of the provider for the app's hooks; nothing is decided by them. */
  readonly claims: Readonly<Record<string, unknown>>;
}

export interface Provider {
  /** Whether it responds with a form that the browser posts. */
  readonly formPost: boolean;
  /** The issuer that its responses name, if they name one. */
  readonly issuer?: string;
  /** Whether to link a user with the same address, if both sides have verified it. */
  readonly linkByEmail: boolean;
  /** Returns the URL of a new sign-in. Throws {@linkcode ProviderError}. */
  authorizationUrl(flow: FlowSecrets): Promise<string>;
  /** Returns the identity that returned. Throws {@linkcode ProviderError}. */
  identify(back: Return): Promise<Identified>;
}

type ProviderErrorCode = "access_denied" | "provider_error" | "provider_unavailable";

/** The provider refused a sign-in, or its response is invalid. The message is for the log and contains no secrets. */
export class ProviderError extends Error {
  override readonly name = "ProviderError";
  readonly code: ProviderErrorCode;

  constructor(code: ProviderErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export interface PresetParts {
  readonly now: () => number;
  /** Returns a fetch that is restricted to the hosts of these URLs and the additional hosts. */
  readonly fetchFrom: (urls: readonly string[], hosts?: readonly string[]) => BoundedFetch;
}

export interface Preset<Settings extends z.ZodType = z.ZodType> {
  /** `secret` resolves a value that the configuration refers to. */
  readonly settings: (secret: z.ZodType<string>) => Settings;
  readonly open: (settings: z.output<Settings>, parts: PresetParts) => Provider;
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
