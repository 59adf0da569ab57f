/** Options that administrators set while the server runs: which there are, and what comes of them under flags and variables. */
import {
  type AccountsConfig,
  accountsConfig,
  type BackupsConfig,
  backupsConfig,
  type GivenOptions,
} from "./config.ts";
import { parseSwitch } from "./option_types.ts";
import { type OptionName, options, type ServeOptions } from "./options.ts";

/** What is known of a setting without its value. JSON. */
export interface SettingSpec {
  readonly name: string;
  readonly flag: string;
  readonly env: string;
  /** How it is entered: `switch` takes `true` or `false`, the others what the flag takes. */
  readonly kind: "switch" | "text" | "list";
  readonly description: string;
  /** How the default is told; `null` when there is nothing to tell. */
  readonly defaultText: string | null;
  readonly secret: boolean;
  /** What the flag or the variable says, which counts more; `text` is left out for secrets. */
  readonly given: { readonly by: "flag" | "env"; readonly text: string | null } | null;
}

/** What settings change while the server runs. */
export interface LiveConfig {
  readonly accounts: AccountsConfig;
  readonly backups: BackupsConfig | null;
}

const names = (Object.keys(options) as OptionName[]).filter((name) => specOf(name).setting !== undefined);

/** All settings, in the order of the options table. */
export function settingSpecs({ texts }: GivenOptions): SettingSpec[] {
  return names.map((name) => {
    const { flag, env, placeholder, description, defaultText, repeatable, setting } = specOf(name);
    const given = texts.get(name);
    const secret = setting?.secret === true;
    return {
      name,
      flag,
      env,
      kind: placeholder === null ? "switch" : repeatable ? "list" : "text",
      description,
      defaultText,
      secret,
      given: given === undefined ? null : { by: given.by, text: secret ? null : given.text },
    };
  });
}

/** Throws an error that says what is wrong with the text of a setting. */
export function checkSetting(name: string, text: string): void {
  const spec = specOf(name as OptionName);
  if (spec.placeholder === null) parseSwitch(text);
  else spec.parse(text);
}

/**
 * What the server does with these settings: a flag or a variable counts more than a setting, a setting more than a default.
 * Throws an error that says what does not fit together.
 */
export function liveConfig(given: GivenOptions, settings: ReadonlyMap<string, string>): LiveConfig {
  const values: Record<string, unknown> = { ...given.values };
  for (const name of names) {
    const text = settings.get(name);
    if (text !== undefined && !given.texts.has(name)) values[name] = specOf(name).parse(text);
  }
  const merged = values as unknown as ServeOptions;
  return { accounts: accountsConfig(merged), backups: backupsConfig(merged) };
}

function specOf(
  name: OptionName,
): (typeof options)[OptionName] & { readonly setting?: { readonly secret?: true } } {
  return options[name];
}
