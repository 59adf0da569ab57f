/** Deploy keys in the main process: created, shown once, verified by their keyed hash. */
import { createHmac, randomBytes } from "node:crypto";
import { z } from "zod";
import { UserError } from "../../errors.ts";
import type { Identity } from "../../functions/identity.ts";
import { adminMainAction, type MainAction } from "../../functions/main_actions.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import { deployLimits } from "../limits.ts";
import { system } from "./system.ts";

const PREFIX = "syncline_deploy_";
const KEY = /^syncline_deploy_[A-Za-z0-9_-]{43}$/;
const KEY_BYTES = 32;

/** Owner of a deploy key. */
export interface Deployer {
  readonly keyId: string;
  readonly name: string;
}

export interface DeployKeysOptions {
  readonly calls: SystemCalls;
  /** Key of the hashes. */
  readonly key: Uint8Array;
  readonly now: () => number;
  readonly log: Log;
}

export class DeployKeys {
  readonly #options: DeployKeysOptions;
  /** Time of the last recorded use by key. */
  readonly #noted = new Map<string, number>();

  constructor(options: DeployKeysOptions) {
    this.#options = options;
  }

  /** Creates a key, which cannot be retrieved again. Throws `invalid_name` and errors of the rows. */
  async create(name: string, createdBy: string): Promise<{ readonly keyId: string; readonly key: string }> {
    const plain = name.trim();
    if (!/^[\p{L}\p{N}][\p{L}\p{N} ._@-]*$/u.test(plain) || plain.length > deployLimits.keyNameCharsMax) {
      throw new UserError(
        "invalid_name",
        `The name of a deploy key may contain letters, digits, spaces and . _ @ -, at most ${deployLimits.keyNameCharsMax} characters`,
      );
    }
    const key = `${PREFIX}${randomBytes(KEY_BYTES).toString("base64url")}`;
    const keyId = await this.#options.calls.mutate(system.addKey, {
      name: plain,
      hash: this.#hash(key),
      createdBy,
    });
    return { keyId, key };
  }

  /** Returns the owner of an active key, or `null`. */
  async verify(token: string): Promise<Deployer | null> {
    if (!KEY.test(token)) return null;
    const found = await this.#options.calls.query(system.findKey, { hash: this.#hash(token) });
    if (found === null) return null;
    const { keyId, name } = found;
    this.#recordUse(keyId);
    return { keyId, name };
  }

  get actions(): ReadonlyMap<string, MainAction> {
    return new Map([[
      "_admin/deployKeys:create",
      adminMainAction(
        z.strictObject({ name: z.string() }),
        ({ name }, { adminId }: Identity) => this.create(name, adminId ?? "command line"),
      ),
    ]]);
  }

  #hash(key: string): string {
    return createHmac("sha256", this.#options.key).update("deploy key\0").update(key).digest("base64url");
  }

  /** Not awaited: a key is valid whether or not its use can be recorded. */
  #recordUse(keyId: string): void {
    const { calls, now, log } = this.#options;
    if (now() - (this.#noted.get(keyId) ?? -Infinity) < deployLimits.keyUseNotedMs) return;
    if (this.#noted.size >= 2 * deployLimits.keysMax) this.#noted.clear();
    this.#noted.set(keyId, now());
    calls.mutate(system.noteKeyUse, { keyId }).catch((error) =>
      log("warn", "Cannot record the use of a deploy key", { code: "deploy", keyId, error })
    );
  }
}
