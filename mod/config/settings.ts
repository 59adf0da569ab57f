/** Settings: options that administrators can change while the server runs. */
import type { BucketLocation } from "../kit/locations/object_store.ts";
import { withoutPassword } from "../kit/secret_encryption.ts";
import type { AlertsConfig } from "../ops/alerts/mod.ts";
import type { AccountsConfig, BackupsConfig, ExecutionLogConfig, ExplicitOptions } from "./config.ts";
import { bucketLocation } from "./locations.ts";
import { parseBucket, parseSwitch } from "./option_types.ts";
import {
  type ExplicitValues,
  type OptionName,
  options,
  type OptionSpec,
  type ServeOptions,
} from "./options.ts";
import { accountsConfig, alertsConfig, backupsConfig, executionLogConfig } from "./resolve_config.ts";

/** Describes a setting, without its value. JSON. */
export interface SettingSpec {
  readonly name: string;
  readonly flag: string;
  readonly env: string;
  /** The input type: `switch` takes `true` or `false`, `long` several lines, the others the syntax of the flag. */
  readonly kind: "switch" | "text" | "list" | "long";
  readonly description: string;
  /** The default as shown to users; `null` to show none. */
  readonly defaultText: string | null;
  readonly secret: boolean;
  /** Whether it is a URL that is shown without its password. */
  readonly passwordInUrl: boolean;
  /** Whether the value is JSON in which each `{"secret": "..."}` is stored encrypted. */
  readonly encryptsSecrets: boolean;
  /** The flag or variable that takes precedence over the setting; `text` as it may be shown. */
  readonly given: { readonly by: "flag" | "env"; readonly text: string | null } | null;
}

/** The part of the configuration that settings can change at run time. */
export interface LiveConfig {
  readonly accounts: AccountsConfig;
  readonly backups: BackupsConfig | null;
  readonly alerts: AlertsConfig;
  /** `null` if the execution log is off. */
  readonly executionLog: ExecutionLogConfig | null;
}

const names = (Object.keys(options) as OptionName[]).filter((name) => specOf(name).setting !== undefined);

/** Returns all settings in the order of the options table. */
export function settingSpecs({ explicit }: ExplicitOptions): SettingSpec[] {
  return names.map((name) => {
    const { flag, env, placeholder, description, defaultText, repeatable, setting } = specOf(name);
    const given = givenText(explicit, name);
    const secret = setting?.secret === true;
    const passwordInUrl = setting?.passwordInUrl === true;
    const shown = passwordInUrl ? withoutPassword(given?.text ?? "") : secret ? null : given?.text ?? null;
    return {
      name,
      flag,
      env,
      kind: placeholder === null ? "switch" : setting?.long ? "long" : repeatable ? "list" : "text",
      description,
      defaultText,
      secret,
      passwordInUrl,
      encryptsSecrets: setting?.encryptsSecrets === true,
      given: given === undefined ? null : { by: given.by, text: shown },
    };
  });
}

/** Throws an `OptionValueError` if the text is not valid for the setting. */
export function checkSetting(name: string, text: string): void {
  const spec = specOf(name as OptionName);
  if (spec.placeholder === null) parseSwitch(text);
  else parseSetting(spec, text);
}

/** Applies settings; flags and variables take precedence. Throws a `StartError` for values that cannot be combined. */
export function liveConfig(given: ExplicitOptions, settings: ReadonlyMap<string, string>): LiveConfig {
  const merged = merge(given, settings);
  return {
    accounts: accountsConfig(merged),
    backups: backupsConfig(merged),
    alerts: alertsConfig(merged),
    executionLog: executionLogConfig(merged),
  };
}

/** Returns a bucket, as `s3://bucket/prefix`, with access by flags and settings. Throws an `OptionValueError` or a `StartError`. */
export function liveBucket(
  given: ExplicitOptions,
  settings: ReadonlyMap<string, string>,
  location: string,
): BucketLocation {
  return bucketLocation(merge(given, settings), parseBucket(location), "Objects");
}

function merge(given: ExplicitOptions, settings: ReadonlyMap<string, string>): ServeOptions {
  const values: Record<string, unknown> = { ...given.values };
  for (const name of names) {
    const text = settings.get(name);
    if (text !== undefined && givenText(given.explicit, name) === undefined) {
      values[name] = parseSetting(specOf(name), text);
    }
  }
  return values as unknown as ServeOptions;
}

function givenText(texts: ExplicitValues, name: OptionName): ReturnType<ExplicitValues["get"]> {
  const { setting } = specOf(name);
  return texts.get(name) ??
    (setting?.overriddenBy === undefined ? undefined : texts.get(setting.overriddenBy as OptionName));
}

function parseSetting({ setting, parse }: OptionSpec, text: string): unknown {
  return (setting?.parse ?? parse)(text);
}

function specOf(name: OptionName): OptionSpec {
  return options[name] as OptionSpec;
}
