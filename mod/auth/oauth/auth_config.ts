/** Parses `--auth-config` or the setting of the same name: sign-in providers and trusted issuers. */
import { z } from "zod";
import { discovery, KeySet, type TrustedIssuer } from "../issuers/mod.ts";
import { endpoint, host, type PresetParts, type Provider } from "./preset.ts";

/** The configuration is invalid. The message names the field. */
export class AuthConfigError extends Error {
  override readonly name = "AuthConfigError";
}

export interface ExternalAuth {
  /** By name, in configuration order. */
  readonly providers: ReadonlyMap<string, Provider>;
  /** By `iss`. */
  readonly issuers: ReadonlyMap<string, TrustedIssuer>;
}

export const noExternalAuth: ExternalAuth = { providers: new Map(), issuers: new Map() };

/** Reads secrets that the configuration refers to. Throws an error that names the problem. */
export type SecretSources = FileSources | SettingSources;

/** For a file, written by the operator, who has access to the machine. */
export interface FileSources {
  env(name: string): string | undefined;
  /** Relative to the folder of the configuration file. */
  readFile(path: string): Promise<string>;
}

/** For a setting, written by an administrator, who must not be able to read the environment or files. */
export interface SettingSources {
  /** `null` if the value was encrypted with another key. */
  unseal(sealed: string): string | null;
}

const NAME = /^[a-z][a-z0-9-]{0,31}$/;

const fileSchema = z.strictObject({
  /** For editors; ignored. */
  $schema: z.string().optional(),
  providers: z.record(z.string(), z.looseObject({ preset: z.string().optional() })).default({}),
  issuers: z.array(z.strictObject({
    issuer: endpoint,
    audience: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]),
    /** URL of the keys, if the issuer has no discovery document. */
    keys: endpoint.optional(),
    hosts: z.array(host).max(10).default([]),
    linkByEmail: z.boolean().default(false),
  })).max(100).default([]),
});

type IssuerSettings = z.infer<typeof fileSchema>["issuers"][number];

/** Parses a configuration. Throws {@linkcode AuthConfigError}. */
export async function readAuthConfig(
  text: string,
  { sources, parts }: { readonly sources: SecretSources; readonly parts: PresetParts },
): Promise<ExternalAuth> {
  const file = await checked(fileSchema, jsonOf(text), "");
  // Loaded lazily: most servers have no providers, and no token should wait for the libraries.
  const [{ presets }] = await Promise.all([import("./presets/mod.ts"), import("jose")]);
  const providers = new Map<string, Provider>();
  for (const [name, { preset: presetName = name, ...settings }] of Object.entries(file.providers)) {
    if (!NAME.test(name)) {
      throw new AuthConfigError(
        `providers.${name}: expected a name of lower-case letters, digits and hyphens`,
      );
    }
    const preset = presets.get(presetName);
    if (preset === undefined) {
      const at = presetName === name ? `providers.${name}` : `providers.${name}.preset`;
      throw new AuthConfigError(
        `${at}: unknown preset "${presetName}", expected one of ${[...presets.keys()].join(", ")}`,
      );
    }
    const known = await checked(preset.settings(secretSchema(sources)), settings, `providers.${name}`);
    providers.set(name, preset.open(known, parts));
  }
  const issuers = new Map<string, TrustedIssuer>();
  for (const [at, settings] of file.issuers.entries()) {
    if (issuers.has(settings.issuer)) {
      throw new AuthConfigError(`issuers.${at}.issuer: is configured twice`);
    }
    issuers.set(settings.issuer, trustedIssuer(settings, parts));
  }
  return { providers, issuers };
}

function trustedIssuer(
  { issuer, audience, keys, hosts, linkByEmail }: IssuerSettings,
  { fetchFrom, now }: PresetParts,
): TrustedIssuer {
  const fetch = fetchFrom(keys === undefined ? [issuer] : [keys], hosts);
  const document = discovery({ issuer, fetch, now });
  const url = keys === undefined ? async () => (await document.get()).jwks_uri : () => Promise.resolve(keys);
  return { issuer, audience: [audience].flat(), linkByEmail, keys: new KeySet({ url, fetch, now }) };
}

/** A reference to a value in an environment variable or a separate file. */
function secretSchema(sources: SecretSources): z.ZodType<string> {
  return "unseal" in sources ? encryptedSchema(sources) : referenceSchema(sources);
}

/** The stored form of a value that an administrator entered as `{"secret": "..."}`. */
function encryptedSchema({ unseal }: SettingSources): z.ZodType<string> {
  const schema = z.strictObject({ sealed: z.string() });
  return z.unknown().transform((value, ctx) => {
    const given = schema.safeParse(value);
    const text = given.success ? unseal(given.data.sealed)?.trim() : undefined;
    if (text) return text;
    const message = !given.success
      ? 'expected {"secret": "…"}'
      : text === ""
      ? "the secret is empty"
      : "the secret cannot be decrypted: enter it again";
    ctx.addIssue({ code: "custom", message });
    return z.NEVER;
  });
}

function referenceSchema({ env, readFile }: FileSources): z.ZodType<string> {
  const refSchema = z.union(
    [
      z.strictObject({
        env: z.string().regex(/^SYNCLINE_\w+$/, "expected a name that starts with SYNCLINE_"),
      }),
      z.strictObject({ file: z.string().min(1) }),
    ],
    { error: 'expected {"env": "SYNCLINE_…"} or {"file": "…"}: this file must not contain secrets' },
  );
  return refSchema.transform(async (ref, ctx) => {
    const fault = (message: string) => {
      ctx.addIssue({ code: "custom", message });
      return z.NEVER;
    };
    if ("env" in ref) {
      const value = env(ref.env)?.trim();
      return value ? value : fault(`the variable ${ref.env} is not set`);
    }
    try {
      const value = (await readFile(ref.file)).trim();
      return value === "" ? fault(`the file ${ref.file} is empty`) : value;
    } catch (error) {
      return fault(`the file ${ref.file} cannot be read: ${error instanceof Error ? error.message : error}`);
    }
  });
}

async function checked<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  place: string,
): Promise<z.output<Schema>> {
  const parsed = await schema.safeParseAsync(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const at = [place, ...issue?.path ?? []].filter((part) => part !== "").join(".");
  throw new AuthConfigError(`${at === "" ? "" : `${at}: `}${issue?.message ?? "invalid"}`);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new AuthConfigError(`it is not JSON: ${error instanceof Error ? error.message : error}`);
  }
}
