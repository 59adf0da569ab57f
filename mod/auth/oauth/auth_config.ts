/** The file of `--auth-config`, or the same as a setting: who may be signed in with, and whose tokens are believed. */
import { z } from "zod";
import { discovery, KeySet, type TrustedIssuer } from "../issuers/mod.ts";
import { endpoint, host, type PresetParts } from "./preset.ts";
import type { Provider } from "./provider.ts";

/** A file that cannot be used. The message names the field. */
export class AuthConfigError extends Error {
  override readonly name = "AuthConfigError";
}

/** What a configuration makes. */
export interface Others {
  /** By name, in the order of the file. */
  readonly providers: ReadonlyMap<string, Provider>;
  /** By the text of `iss`. */
  readonly issuers: ReadonlyMap<string, TrustedIssuer>;
}

export const nobody: Others = { providers: new Map(), issuers: new Map() };

/** How secrets are read that the file only points at. Throws an error that says what is wrong. */
export type SecretSources = FileSources | SettingSources;

/** Of a file: the operator's, who may read the machine. */
export interface FileSources {
  env(name: string): string | undefined;
  /** Relative to the folder of the file. */
  readFile(path: string): Promise<string>;
}

/** Of a setting: an administrator's, who is shown neither the environment nor files by way of a provider of their own. */
export interface SettingSources {
  /** `null` for what was sealed under another key. */
  unseal(sealed: string): string | null;
}

const NAME = /^[a-z][a-z0-9-]{0,31}$/;

const fileSchema = z.strictObject({
  /** For editors; says nothing here. */
  $schema: z.string().optional(),
  providers: z.record(z.string(), z.looseObject({ preset: z.string().optional() })).default({}),
  issuers: z.array(z.strictObject({
    issuer: endpoint,
    audience: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]),
    /** Where its keys are, if it has no discovery document. */
    keys: endpoint.optional(),
    hosts: z.array(host).max(10).default([]),
    linkByEmail: z.boolean().default(false),
  })).max(100).default([]),
});

type IssuerSettings = z.infer<typeof fileSchema>["issuers"][number];

/** Reads the text of a configuration. Throws {@linkcode AuthConfigError}. */
export async function readAuthConfig(
  text: string,
  { sources, parts }: { readonly sources: SecretSources; readonly parts: PresetParts },
): Promise<Others> {
  const file = await checked(fileSchema, jsonOf(text), "");
  // With the libraries they speak by: most servers have no provider, and nobody's first token waits for them.
  const [{ presets }] = await Promise.all([import("./presets/mod.ts"), import("jose")]);
  const providers = new Map<string, Provider>();
  for (const [name, { preset: presetName = name, ...settings }] of Object.entries(file.providers)) {
    if (!NAME.test(name)) {
      throw new AuthConfigError(`providers.${name}: expected a name of small letters, digits and hyphens`);
    }
    const preset = presets.get(presetName);
    if (preset === undefined) {
      const at = presetName === name ? `providers.${name}` : `providers.${name}.preset`;
      throw new AuthConfigError(
        `${at}: there is no preset "${presetName}"; there are ${[...presets.keys()].join(", ")}`,
      );
    }
    const known = await checked(preset.settings(secretSchema(sources)), settings, `providers.${name}`);
    providers.set(name, preset.open(known, parts));
  }
  const issuers = new Map<string, TrustedIssuer>();
  for (const [at, settings] of file.issuers.entries()) {
    if (issuers.has(settings.issuer)) {
      throw new AuthConfigError(`issuers.${at}.issuer: stands in the file twice`);
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

/** A value that stands elsewhere: in a variable of the environment or a file of its own. */
function secretSchema(sources: SecretSources): z.ZodType<string> {
  return "unseal" in sources ? sealedSchema(sources) : referenceSchema(sources);
}

/** A value that an administrator entered as `{"secret": "..."}`, as it is stored. */
function sealedSchema({ unseal }: SettingSources): z.ZodType<string> {
  const schema = z.strictObject({ sealed: z.string() });
  return z.unknown().transform((value, ctx) => {
    const given = schema.safeParse(value);
    const text = given.success ? unseal(given.data.sealed)?.trim() : undefined;
    if (text) return text;
    const message = !given.success
      ? 'expected {"secret": "…"}'
      : text === ""
      ? "the secret is empty"
      : "the secret cannot be read any more: enter it again";
    ctx.addIssue({ code: "custom", message });
    return z.NEVER;
  });
}

function referenceSchema({ env, readFile }: FileSources): z.ZodType<string> {
  const refSchema = z.union(
    [
      z.strictObject({
        env: z.string().regex(/^SYNCLINE_\w+$/, "expected a name that begins with SYNCLINE_"),
      }),
      z.strictObject({ file: z.string().min(1) }),
    ],
    { error: 'expected {"env": "SYNCLINE_…"} or {"file": "…"}: secrets do not stand in this file' },
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
