/** Deploy keys in main: made once, shown once, looked up by their keyed hash. */
import { createHmac, randomBytes } from "node:crypto";
import { z } from "zod";
import { UserError } from "../../errors.ts";
import type { Identity } from "../../functions/identity.ts";
import { adminMainAction, type MainAction } from "../../functions/main_actions.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import { deployLimits } from "../limits.ts";
import { system } from "./system.ts";

/** What keys begin with, so that one that got lost is recognized. */
const PREFIX = "syncline_deploy_";
const KEY = /^syncline_deploy_[A-Za-z0-9_-]{43}$/;
const KEY_BYTES = 32;

/** Whose key a request brings. */
export interface Deployer {
  readonly keyId: string;
  readonly name: string;
}

export interface DeployKeysOptions {
  readonly calls: SystemCalls;
  /** Keys the hashes. */
  readonly key: Uint8Array;
  readonly now: () => number;
  readonly log: Log;
}

export class DeployKeys {
  readonly #options: DeployKeysOptions;
  /** When the use of each key was noted last. */
  readonly #noted = new Map<string, number>();

  constructor(options: DeployKeysOptions) {
    this.#options = options;
  }

  /** Makes a key. Nobody can be told it again. Throws `invalid_name` and what the rows refuse. */
  async create(name: string, createdBy: string): Promise<{ readonly keyId: string; readonly key: string }> {
    const plain = name.trim();
    if (!/^[\p{L}\p{N}][\p{L}\p{N} ._@-]*$/u.test(plain) || plain.length > deployLimits.keyNameCharsMax) {
      throw new UserError(
        "invalid_name",
        `A deploy key is named by letters, digits and . _ @ - or spaces, ${deployLimits.keyNameCharsMax} at most`,
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

  /** Whose live key this is; `null` for any other text. */
  async verify(token: string): Promise<Deployer | null> {
    if (!KEY.test(token)) return null;
    const found = await this.#options.calls.query(system.findKey, { hash: this.#hash(token) });
    if (found === null) return null;
    const { keyId, name } = found;
    this.#note(keyId);
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

  /** Not waited for: a key is good for its deploy whether its use can be written down or not. */
  #note(keyId: string): void {
    const { calls, now, log } = this.#options;
    if (now() - (this.#noted.get(keyId) ?? -Infinity) < deployLimits.keyUseNotedMs) return;
    if (this.#noted.size >= 2 * deployLimits.keysMax) this.#noted.clear();
    this.#noted.set(keyId, now());
    calls.mutate(system.noteKeyUse, { keyId }).catch((error) =>
      log("warn", "The use of a deploy key could not be noted", { keyId, error })
    );
  }
}
