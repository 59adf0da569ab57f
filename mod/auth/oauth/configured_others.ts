/** The currently configured providers and issuers: from a file, from a setting, or none. */
import type { Log } from "../../kit/log.ts";
import { noProviders, type Others, readAuthConfig } from "./auth_config.ts";
import { AuthConfigFile } from "./config_file.ts";
import type { PresetParts } from "./preset.ts";

/** Source of the configuration. */
export type AuthConfigPlace =
  | { readonly kind: "file"; readonly path: string }
  /** Secrets in it are encrypted. */
  | { readonly kind: "text"; readonly text: string };

export interface ConfiguredOthersOptions {
  readonly env: (name: string) => string | undefined;
  /** Decrypts a secret of the setting; `null` if it was encrypted with another key. */
  readonly unseal: (sealed: string) => string | null;
  readonly parts: PresetParts;
  readonly log: Log;
}

/** Rebuilt at each change, together with the cached keys of issuers. */
export class ConfiguredOthers implements AsyncDisposable {
  readonly #options: ConfiguredOthersOptions;
  #place: AuthConfigPlace | null = null;
  #source: AuthConfigFile | { readonly others: Others } = { others: noProviders };

  private constructor(options: ConfiguredOthersOptions) {
    this.#options = options;
  }

  /** Throws `AuthConfigError`. */
  static async open(
    place: AuthConfigPlace | null,
    options: ConfiguredOthersOptions,
  ): Promise<ConfiguredOthers> {
    const configured = new ConfiguredOthers(options);
    await configured.use(place);
    return configured;
  }

  get others(): Others {
    return this.#source.others;
  }

  /** Switches to another source. Throws `AuthConfigError` without changing anything. */
  async use(place: AuthConfigPlace | null): Promise<void> {
    if (JSON.stringify(place) === JSON.stringify(this.#place)) return;
    const { env, parts, log } = this.#options;
    const before = this.#source;
    this.#source = place?.kind === "file"
      ? await AuthConfigFile.open({ path: place.path, env, parts, log })
      : { others: await this.#read(place) };
    this.#place = place;
    if (before instanceof AuthConfigFile) await before[Symbol.asyncDispose]();
  }

  /** Validates a configuration. Throws `AuthConfigError`. */
  async tryOut(place: AuthConfigPlace | null): Promise<void> {
    if (place?.kind === "text") await this.#read(place);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#source instanceof AuthConfigFile) await this.#source[Symbol.asyncDispose]();
  }

  async #read(place: Extract<AuthConfigPlace, { kind: "text" }> | null): Promise<Others> {
    if (place === null) return noProviders;
    const { unseal, parts } = this.#options;
    return await readAuthConfig(place.text, { sources: { unseal }, parts });
  }
}
