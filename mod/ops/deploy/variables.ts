/** Encrypted environment variables. Changes apply to actions started later; `--env-file` takes precedence. */
import { z } from "zod";
import type { CommitEntry } from "../../engine/mod.ts";
import { UserError } from "../../errors.ts";
import { adminMainAction, type MainAction, unauditedAdminAction } from "../../functions/main_actions.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import { decryptSecret, encryptSecret, keyName } from "../../kit/secret_encryption.ts";
import { deployLimits } from "../limits.ts";
import { system } from "./system.ts";

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,99}$/;

/** Variables by name; `null` deletes one. */
export const variableChanges = z.record(
  z.string().regex(NAME, "is not a valid variable name"),
  z.string().max(deployLimits.variableCharsMax).nullable(),
);

export type VariableChanges = z.output<typeof variableChanges>;

/** A variable as administrators see it. */
export interface VariableInfo {
  readonly name: string;
  /** `null` if it was encrypted with another key and must be entered again. */
  readonly value: string | null;
  /** Whether `--env-file` sets another value, which takes precedence. */
  readonly overridden: boolean;
}

export interface VariablesOptions {
  readonly calls: SystemCalls;
  /** Encryption key. */
  readonly key: Uint8Array;
  /** Variables of `--env-file`. */
  readonly given: Readonly<Record<string, string>>;
  /** Passes variables to actions started from now on. */
  readonly use: (env: Readonly<Record<string, string>>) => void;
  readonly log: Log;
}

export class Variables {
  readonly #options: VariablesOptions;
  #stored: ReadonlyMap<string, string | null> = new Map();
  /** Serializes reads. */
  #reading: Promise<void> = Promise.resolve();

  constructor(options: VariablesOptions) {
    this.#options = options;
  }

  /** Reads and applies the stored variables. */
  load(): Promise<void> {
    return this.#reading = this.#reading.catch(() => {}).then(() => this.#read());
  }

  /** Call with each group of commits, in order. */
  applyCommits(entries: readonly CommitEntry[]): void {
    if (!entries.some(({ changes }) => changes.some(({ table }) => table === "_env"))) return;
    this.load().catch((error) =>
      this.#options.log("error", "Cannot read the environment variables", { error })
    );
  }

  list(): VariableInfo[] {
    const { given } = this.#options;
    return [...this.#stored].map(([name, value]) => ({ name, value, overridden: Object.hasOwn(given, name) }))
      .toSorted((a, b) => a.name < b.name ? -1 : 1);
  }

  /** Changes variables atomically; resolves when they are applied. Returns those overridden by `--env-file`. */
  async set(changes: VariableChanges): Promise<{ readonly overridden: string[] }> {
    const { calls, key, given } = this.#options;
    const rows = Object.entries(changes).map(([name, value]) => ({
      name,
      value: value === null
        ? null
        : { sealed: encryptSecret(value, { key, name: secretName(name) }), key: keyName(key) },
    }));
    if (rows.length > deployLimits.variablesMax) {
      throw new UserError("too_many_variables", `The limit is ${deployLimits.variablesMax} variables`);
    }
    await calls.mutate(system.changeVariables, { changes: rows });
    await this.load();
    return { overridden: Object.keys(changes).filter((name) => Object.hasOwn(given, name)) };
  }

  get actions(): ReadonlyMap<string, MainAction> {
    return new Map([
      ["_admin/env:list", unauditedAdminAction(z.strictObject({}), () => Promise.resolve(this.list()))],
      [
        "_admin/env:set",
        adminMainAction(z.strictObject({ changes: variableChanges }), ({ changes }) => this.set(changes)),
      ],
    ]);
  }

  async #read(): Promise<void> {
    const { calls, key, given, use, log } = this.#options;
    const before = this.#stored;
    const rows = await calls.queryInWriter(system.variableRows, {});
    const stored = new Map<string, string | null>();
    for (const { name, sealed } of rows) {
      const value = decryptSecret(sealed, { key, name: secretName(name) });
      if (value === null) {
        log(
          "warn",
          "Cannot decrypt an environment variable, because it was encrypted with another auth_secret.key. Enter it again",
          {
            name,
          },
        );
      }
      stored.set(name, value);
    }
    this.#stored = stored;
    const same = stored.size === before.size &&
      [...stored].every(([name, value]) => before.get(name) === value && before.has(name));
    if (same) return;
    const known = [...stored].filter((entry): entry is [string, string] => entry[1] !== null);
    use({ ...Object.fromEntries(known), ...given });
  }
}

function secretName(name: string): string {
  return `ctx.env ${name}`;
}
