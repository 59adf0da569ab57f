/** Options that administrators set while the server runs: which there are, and what comes of them under flags and variables. */
import type { AccountsConfig, BackupsConfig, ExecutionLogConfig, GivenOptions } from "./config.ts";
import { parseSwitch } from "./option_types.ts";
import { type GivenTexts, type OptionName, options, type OptionSpec, type ServeOptions } from "./options.ts";
import { accountsConfig, backupsConfig, executionLogConfig } from "./resolve_config.ts";

/** What is known of a setting without its value. JSON. */
export interface SettingSpec {
  readonly name: string;
  readonly flag: string;
  readonly env: string;
  /** How it is entered: `switch` takes `true` or `false`, `long` many lines, the others what the flag takes. */
  readonly kind: "switch" | "text" | "list" | "long";
  readonly description: string;
  /** How the default is told; `null` when there is nothing to tell. */
  readonly defaultText: string | null;
  readonly secret: boolean;
  /** Whether it is JSON in which every `{"secret": "..."}` is stored encrypted. */
  readonly sealsWithin: boolean;
  /** What the flag or the variable says, which counts more; `text` is left out for secrets. */
  readonly given: { readonly by: "flag" | "env"; readonly text: string | null } | null;
}

/** What settings change while the server runs. */
export interface LiveConfig {
  readonly accounts: AccountsConfig;
  readonly backups: BackupsConfig | null;
  /** `null`: there is no execution log. */
  readonly executionLog: ExecutionLogConfig | null;
}

const names = (Object.keys(options) as OptionName[]).filter((name) => specOf(name).setting !== undefined);

/** All settings, in the order of the options table. */
export function settingSpecs({ texts }: GivenOptions): SettingSpec[] {
  return names.map((name) => {
    const { flag, env, placeholder, description, defaultText, repeatable, setting } = specOf(name);
    const given = givenText(texts, name);
    const secret = setting?.secret === true;
    return {
      name,
      flag,
      env,
      kind: placeholder === null ? "switch" : setting?.long ? "long" : repeatable ? "list" : "text",
      description,
      defaultText,
      secret,
      sealsWithin: setting?.sealsWithin === true,
      given: given === undefined ? null : { by: given.by, text: secret ? null : given.text },
    };
  });
}

/** Throws an error that says what is wrong with the text of a setting. */
export function checkSetting(name: string, text: string): void {
  const spec = specOf(name as OptionName);
  if (spec.placeholder === null) parseSwitch(text);
  else parseSetting(spec, text);
}

/**
 * What the server does with these settings: a flag or a variable counts more than a setting, a setting more than a default.
 * Throws an error that says what does not fit together.
 */
export function liveConfig(given: GivenOptions, settings: ReadonlyMap<string, string>): LiveConfig {
  const values: Record<string, unknown> = { ...given.values };
  for (const name of names) {
    const text = settings.get(name);
    if (text !== undefined && givenText(given.texts, name) === undefined) {
      values[name] = parseSetting(specOf(name), text);
    }
  }
  const merged = values as unknown as ServeOptions;
  return {
    accounts: accountsConfig(merged),
    backups: backupsConfig(merged),
    executionLog: executionLogConfig(merged),
  };
}

/** What a flag or a variable says of an option, or of the one that counts more than it. */
function givenText(texts: GivenTexts, name: OptionName): ReturnType<GivenTexts["get"]> {
  const { setting } = specOf(name);
  return texts.get(name) ??
    (setting?.under === undefined ? undefined : texts.get(setting.under as OptionName));
}

function parseSetting({ setting, parse }: OptionSpec, text: string): unknown {
  return (setting?.parse ?? parse)(text);
}

function specOf(name: OptionName): OptionSpec {
  return options[name] as OptionSpec;
}
