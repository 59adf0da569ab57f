/** The currently configured providers and issuers: from a file, from a setting, or none. */
import type { Log } from "../../kit/log.ts";
import { type ExternalAuth, noExternalAuth, readAuthConfig } from "./auth_config.ts";
import { AuthConfigFile } from "./config_file.ts";
import type { PresetParts } from "./preset.ts";
import type { ProviderCheck } from "./provider_check.ts";

export type AuthConfigSource =
  | { readonly kind: "file"; readonly path: string }
  /** Secrets in it are encrypted. */
  | { readonly kind: "text"; readonly text: string };

export interface ConfiguredExternalAuthOptions {
  readonly env: (name: string) => string | undefined;
  /** Decrypts a secret of the setting; `null` if it was encrypted with another key. */
  readonly unseal: (sealed: string) => string | null;
  readonly parts: PresetParts;
  readonly log: Log;
}

/** Rebuilt at each change, together with the cached keys of issuers. */
export class ConfiguredExternalAuth implements AsyncDisposable {
  readonly #options: ConfiguredExternalAuthOptions;
  #place: AuthConfigSource | null = null;
  #source: AuthConfigFile | { readonly externalAuth: ExternalAuth } = { externalAuth: noExternalAuth };

  private constructor(options: ConfiguredExternalAuthOptions) {
    this.#options = options;
  }

  /** Throws `AuthConfigError`. */
  static async open(
    place: AuthConfigSource | null,
    options: ConfiguredExternalAuthOptions,
  ): Promise<ConfiguredExternalAuth> {
    const configured = new ConfiguredExternalAuth(options);
    await configured.use(place);
    return configured;
  }

  get externalAuth(): ExternalAuth {
    return this.#source.externalAuth;
  }

  /** Switches to another source. Throws `AuthConfigError` without changing anything. */
  async use(place: AuthConfigSource | null): Promise<void> {
    if (JSON.stringify(place) === JSON.stringify(this.#place)) return;
    const { env, parts, log } = this.#options;
    const before = this.#source;
    this.#source = place?.kind === "file"
      ? await AuthConfigFile.open({ path: place.path, env, parts, log })
      : { externalAuth: await this.#read(place) };
    this.#place = place;
    if (before instanceof AuthConfigFile) await before[Symbol.asyncDispose]();
  }

  /** Validates a configuration. Throws `AuthConfigError`. */
  async tryOut(place: AuthConfigSource | null): Promise<void> {
    if (place?.kind === "text") await this.#read(place);
  }

  /** Tests a provider with the callback address. `null` if it is not configured. Throws `AuthConfigError`. */
  async check(name: string, callback: string): Promise<ProviderCheck | null> {
    // Read again, so that nothing is taken from a cache.
    const { providers } = this.#source instanceof AuthConfigFile
      ? await this.#source.readAgain()
      : this.#place?.kind === "text"
      ? await this.#read(this.#place)
      : noExternalAuth;
    const provider = providers.get(name);
    if (provider === undefined) return null;
    const { checkProvider } = await import("./provider_check.ts");
    return await checkProvider(provider, { callback, fetch });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#source instanceof AuthConfigFile) await this.#source[Symbol.asyncDispose]();
  }

  async #read(place: Extract<AuthConfigSource, { kind: "text" }> | null): Promise<ExternalAuth> {
    if (place === null) return noExternalAuth;
    const { unseal, parts } = this.#options;
    return await readAuthConfig(place.text, { sources: { unseal }, parts });
  }
}
