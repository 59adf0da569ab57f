/** Runtime settings in main, with encrypted secrets. The rows are authoritative; listeners get one change at a time. */
import { z } from "zod";
import type { CommitEntry } from "../../engine/mod.ts";
import { UserError } from "../../errors.ts";
import type { Identity } from "../../functions/identity.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import type { SettingRowChange } from "./isolate_functions/settings.ts";
import {
  decryptSecret,
  encryptNested,
  encryptSecret,
  keyName,
  secretToEnterAgain,
  withoutPassword,
  withStoredPassword,
} from "../../kit/secret_encryption.ts";
import { system } from "./system.ts";

export const SETTING_CHARS_MAX = 10_000;

/** Settings by name, as strings in the format of the flag; `null` deletes one. */
export const setArgs = z.strictObject({
  changes: z.record(z.string(), z.string().max(SETTING_CHARS_MAX).nullable()),
});

export interface SettingFacts {
  readonly name: string;
  readonly secret: boolean;
  /** Whether it is a URL that is shown without its password. A URL with a user name only keeps the stored password. */
  readonly passwordInUrl: boolean;
  /** Whether it is JSON whose secrets are encrypted individually. */
  readonly encryptsSecrets: boolean;
  /** Value of the flag or environment variable that takes precedence, if set. */
  readonly given: unknown;
}

export interface SettingsOptions {
  readonly calls: SystemCalls;
  /** Encrypts secrets. */
  readonly key: Uint8Array;
  readonly specs: readonly SettingFacts[];
  /** Throws if the value of one setting is invalid. */
  readonly checkOne: (name: string, text: string) => void;
  /** Rejects if the settings are inconsistent or cannot be used. */
  readonly checkAll: (settings: ReadonlyMap<string, string>) => Promise<void>;
  readonly log: Log;
}

/** Called with all set settings after a change. Exceptions are logged. */
export type SettingsListener = (settings: ReadonlyMap<string, string>) => Promise<void> | void;

interface SettingRow {
  readonly _id: string;
  readonly name: string;
  readonly text?: string | undefined;
  readonly sealed?: string | undefined;
  readonly key?: string | undefined;
}

export class Settings {
  readonly #options: SettingsOptions;
  readonly #specs: ReadonlyMap<string, SettingFacts>;
  readonly #listeners: SettingsListener[] = [];
  /** Readable settings by name, in sync with the rows. */
  readonly #texts = new Map<string, string>();
  /** Names by row ID, because a deletion in the commit stream contains the ID only. */
  readonly #rowNames = new Map<string, string>();
  /** Serializes listener calls. */
  #notifying: Promise<void> = Promise.resolve();

  constructor(options: SettingsOptions) {
    this.#options = options;
    this.#specs = new Map(options.specs.map((spec) => [spec.name, spec]));
  }

  /** Identifier of the encryption key. */
  get keyName(): string {
    return keyName(this.#options.key);
  }

  /** Adds a listener, called after each change. Listeners are called in the order in which they were added. */
  onChange(listener: SettingsListener): void {
    this.#listeners.push(listener);
  }

  /** Loads the settings. Call at startup and if commits may have been missed. */
  async load(): Promise<void> {
    const rows = await this.#options.calls.queryInWriter(system.settingRows, {});
    this.#texts.clear();
    this.#rowNames.clear();
    for (const row of rows) this.#apply(row);
    if (rows.length > 0) this.#notify();
    await this.#notifying;
  }

  /** Call with each group of commits, in order. */
  applyCommits(entries: readonly CommitEntry[]): void {
    let changed = false;
    for (const { changes } of entries) {
      for (const { table, id, doc } of changes) {
        if (table !== "_settings") continue;
        changed = true;
        const name = this.#rowNames.get(id);
        if (doc !== null && doc !== undefined) this.#apply(JSON.parse(doc));
        else if (name !== undefined) {
          this.#rowNames.delete(id);
          this.#texts.delete(name);
        }
      }
    }
    if (changed) this.#notify();
  }

  /** Settings by name, without those that cannot be decrypted. */
  get texts(): ReadonlyMap<string, string> {
    return this.#texts;
  }

  /** Changes settings; resolves when applied. Throws `unknown_setting`, `invalid_setting`. Returns overridden names. */
  async set(
    changes: Readonly<Record<string, string | null>>,
    { adminId, sessionId }: Identity,
  ): Promise<{ overridden: string[] }> {
    const { calls, checkAll } = this.#options;
    const after = new Map(this.#texts);
    const rows = Object.entries(changes).map(([name, text]) => {
      const { row, value } = this.#checked(name, text);
      if (value === null) after.delete(name);
      else after.set(name, value);
      return row;
    });
    try {
      await checkAll(after);
    } catch (error) {
      throw invalid(null, error);
    }
    await calls.mutate(system.changeSettings, { changes: rows, admin: adminId ?? "", session: sessionId });
    await this.#notifying;
    return { overridden: Object.keys(changes).filter((name) => this.#specs.get(name)?.given) };
  }

  /** Returns the row to store, and the value as `#texts` has it afterwards. */
  #checked(
    name: string,
    entered: string | null,
  ): { readonly row: SettingRowChange; readonly value: string | null } {
    const spec = this.#specs.get(name);
    if (spec === undefined) throw new UserError("unknown_setting", `Unknown setting "${name}"`, { name });
    if (entered === null) return { row: { name, value: null }, value: null };
    const text = spec.passwordInUrl ? withStoredPassword(entered, this.#texts.get(name)) : entered;
    try {
      this.#options.checkOne(name, text);
    } catch (error) {
      throw invalid(name, error);
    }
    const { key } = this.#options;
    if (spec.encryptsSecrets) {
      const moved = secretToEnterAgain(text, this.#texts.get(name));
      if (moved !== null) {
        const reason =
          "enter the secret again. The stored one is kept only while it is sent to the same server";
        throw invalid(name, new Error(`${moved}: ${reason}`));
      }
      const encrypted = encryptNested(text, { key, name });
      return { row: { name, value: { text: encrypted, key: this.keyName } }, value: encrypted };
    }
    if (!spec.secret) return { row: { name, value: { text } }, value: text };
    const sealed = encryptSecret(text, { key, name });
    const shown = spec.passwordInUrl ? { text: withoutPassword(text) } : {};
    return { row: { name, value: { sealed, key: this.keyName, ...shown } }, value: text };
  }

  #apply(row: SettingRow): void {
    const { key, log } = this.#options;
    const { _id, name, sealed } = row;
    this.#rowNames.set(_id, name);
    const foreign = sealed === undefined && row.key !== undefined && row.key !== this.keyName;
    const text = foreign ? null : sealed === undefined ? row.text : decryptSecret(sealed, { key, name });
    if (text === null) {
      log(
        "warn",
        "Cannot decrypt a secret setting, because it was encrypted with another auth_secret.key. Enter it again",
        {
          name,
        },
      );
    }
    if (text === null || text === undefined) this.#texts.delete(name);
    else this.#texts.set(name, text);
  }

  #notify(): void {
    const settings = new Map(this.#texts);
    this.#notifying = this.#notifying.then(async () => {
      for (const listener of this.#listeners) {
        try {
          await listener(settings);
        } catch (error) {
          this.#options.log("error", "Cannot apply settings", { error });
        }
      }
    });
  }
}

function invalid(name: string | null, error: unknown): UserError {
  const message = error instanceof Error ? error.message : String(error);
  return new UserError("invalid_setting", message, { name });
}
