/** Presets of identity providers: the fields of their form, and their part of the setting `authConfig`. */

export interface ProviderField {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  /** `secret` is stored encrypted; `long` in addition has several lines. */
  readonly kind: "text" | "secret" | "long" | "list";
  readonly required: boolean;
  readonly placeholder?: string;
}

export interface ProviderPreset {
  readonly label: string;
  /** Where to register the callback address. */
  readonly where: string;
  readonly fields: readonly ProviderField[];
}

const clientId: ProviderField = { name: "clientId", label: "Client ID", kind: "text", required: true };
const clientSecret: ProviderField = {
  name: "clientSecret",
  label: "Client secret",
  kind: "secret",
  required: true,
};
const issuer = (placeholder: string): ProviderField => ({
  name: "issuer",
  label: "Address",
  hint: "Only for a server of your own.",
  kind: "text",
  required: false,
  placeholder,
});

export const PROVIDER_PRESETS: Readonly<Record<string, ProviderPreset>> = {
  google: {
    label: "Google",
    where: "Google Cloud console, APIs & Services, Credentials: Authorized redirect URIs",
    fields: [clientId, clientSecret],
  },
  github: {
    label: "GitHub",
    where: "GitHub, Developer settings, OAuth Apps: Authorization callback URL",
    fields: [clientId, clientSecret, issuer("https://github.com")],
  },
  microsoft: {
    label: "Microsoft",
    where: "Microsoft Entra admin center, App registrations, Authentication: Redirect URIs (Web)",
    fields: [
      clientId,
      clientSecret,
      { name: "tenant", label: "Tenant ID", kind: "text", required: true },
    ],
  },
  apple: {
    label: "Apple",
    where: "Apple Developer, Identifiers, Services IDs, Sign in with Apple: Return URLs",
    fields: [
      { ...clientId, label: "Services ID" },
      { name: "teamId", label: "Team ID", kind: "text", required: true },
      { name: "keyId", label: "Key ID", kind: "text", required: true },
      {
        name: "privateKey",
        label: "Private key",
        hint: "The content of the .p8 file.",
        kind: "long",
        required: true,
      },
    ],
  },
  gitlab: {
    label: "GitLab",
    where: "GitLab, Applications: Redirect URI, with the scopes openid, email and profile",
    fields: [clientId, clientSecret, issuer("https://gitlab.com")],
  },
  discord: {
    label: "Discord",
    where: "Discord Developer Portal, OAuth2: Redirects",
    fields: [clientId, clientSecret],
  },
  oidc: {
    label: "OpenID Connect",
    where: "Its redirect URIs",
    fields: [
      {
        name: "issuer",
        label: "Issuer",
        kind: "text",
        required: true,
        placeholder: "https://id.example.com",
      },
      clientId,
      clientSecret,
      {
        name: "scope",
        label: "Scopes",
        kind: "text",
        required: false,
        placeholder: "openid email profile",
      },
      {
        name: "hosts",
        label: "Further hosts",
        hint: "Hosts of its endpoints besides that of the issuer, separated by commas.",
        kind: "list",
        required: false,
      },
    ],
  },
};

/** A configured provider. Secrets are `{"sealed": "..."}`. */
export type ProviderConfig = Readonly<Record<string, unknown>>;

export interface AuthConfig {
  readonly providers: Readonly<Record<string, ProviderConfig>>;
  readonly [other: string]: unknown;
}

/** Parses the setting; without providers if it is empty or is not an object. */
export function authConfigOf(text: string | null): AuthConfig {
  try {
    const config: unknown = JSON.parse(text ?? "{}");
    if (typeof config === "object" && config !== null) return { providers: {}, ...config };
  } catch {
    // The server accepts JSON only, so this is the text of another version.
  }
  return { providers: {} };
}

export const presetOf = (name: string, config: ProviderConfig): string => String(config["preset"] ?? name);

/** The value as a field shows it; secrets are empty. */
export function fieldText({ name, kind }: ProviderField, config: ProviderConfig): string {
  const value = config[name];
  if (kind === "secret" || kind === "long" || value === undefined) return "";
  return Array.isArray(value) ? value.join(", ") : String(value);
}

/** Returns the configuration with the entered fields. Empty secrets keep the stored one; other settings are kept. */
export function withFields(
  before: ProviderConfig,
  { preset, name, textOf, linkByEmail }: {
    readonly preset: string;
    readonly name: string;
    readonly textOf: (field: string) => string;
    readonly linkByEmail: boolean;
  },
): ProviderConfig {
  const changed: Record<string, unknown> = { ...before };
  delete changed["preset"];
  delete changed["linkByEmail"];
  for (const { name: field, kind } of PROVIDER_PRESETS[preset]?.fields ?? []) {
    const text = textOf(field).trim();
    if (kind === "secret" || kind === "long") {
      if (text !== "") changed[field] = { secret: text };
    } else if (text === "") delete changed[field];
    else changed[field] = kind === "list" ? text.split(",").map((part) => part.trim()) : text;
  }
  return { ...preset !== name && { preset }, ...changed, ...!linkByEmail && { linkByEmail } };
}
