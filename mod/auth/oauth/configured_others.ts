/** Providers and issuers as they are configured now: by a file, by a text of the settings, or not at all. */
import type { Log } from "../../kit/log.ts";
import { nobody, type Others, readAuthConfig } from "./auth_config.ts";
import { AuthConfigFile } from "./config_file.ts";
import type { PresetParts } from "./preset.ts";

/** Where providers and issuers are said. */
export type AuthConfigPlace =
  | { readonly kind: "file"; readonly path: string }
  /** Secrets in it are sealed. */
  | { readonly kind: "text"; readonly text: string };

export interface ConfiguredOthersOptions {
  readonly env: (name: string) => string | undefined;
  /** Opens a secret of the settings; `null` for one that was sealed under another key. */
  readonly unseal: (sealed: string) => string | null;
  readonly parts: PresetParts;
  readonly log: Log;
}

/** What is asked for is made anew at each change; what was known of an issuer's keys goes with it. */
export class ConfiguredOthers implements AsyncDisposable {
  readonly #options: ConfiguredOthersOptions;
  #place: AuthConfigPlace | null = null;
  #source: AuthConfigFile | { readonly others: Others } = { others: nobody };

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

  /** From now on it is as this place says. Throws `AuthConfigError`, and changes nothing then. */
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

  /** Throws `AuthConfigError` for what could not be used. */
  async tryOut(place: AuthConfigPlace | null): Promise<void> {
    if (place?.kind === "text") await this.#read(place);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#source instanceof AuthConfigFile) await this.#source[Symbol.asyncDispose]();
  }

  async #read(place: Extract<AuthConfigPlace, { kind: "text" }> | null): Promise<Others> {
    if (place === null) return nobody;
    const { unseal, parts } = this.#options;
    return await readAuthConfig(place.text, { sources: { unseal }, parts });
  }
}
