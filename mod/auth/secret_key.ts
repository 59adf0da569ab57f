/** The server's secret: one file, from which separate keys are derived for each use. */
import { Buffer } from "node:buffer";
import { hkdfSync, randomBytes } from "node:crypto";
import { join } from "node:path";
import { writeDurably } from "../kit/durable_files.ts";

/** Name of the file in the data folder. */
export const secretKeyFile = "auth_secret.key";

const KEY_BYTES = 32;
const KEY_TEXT = /^[A-Za-z0-9_-]{43}\n?$/;

/** One key for each use, 32 bytes each, so that what one use gives away tells nothing about another. */
export interface SecretKeys {
  /** Signs access tokens. */
  readonly accessTokens: Uint8Array<ArrayBuffer>;
  /** Keys the hashes under which tokens and codes are stored. */
  readonly tokenHashes: Uint8Array<ArrayBuffer>;
  /** Seals the inner half of refresh tokens. */
  readonly refreshTokens: Uint8Array<ArrayBuffer>;
  /** Encrypts secrets in the settings. */
  readonly settings: Uint8Array<ArrayBuffer>;
  /** Signs upload and read URLs. */
  readonly urlSignatures: Uint8Array<ArrayBuffer>;
}

/** The secret key file cannot be used; the message says what to do. */
export class SecretKeyError extends Error {
  override readonly name = "SecretKeyError";
}

export interface LoadedSecret {
  readonly keys: SecretKeys;
  /** Whether the file was made by this call: everybody who was signed in before is signed out. */
  readonly created: boolean;
  /** Whether others could read the file; its mode was set to 0600. */
  readonly wasReadableByOthers: boolean;
}

/**
 * Reads the secret of a data folder, or makes it when there is none. The caller holds the folder's lock.
 * Throws {@linkcode SecretKeyError} when the file is not a key.
 */
export async function loadSecretKeys(dataDir: string): Promise<LoadedSecret> {
  const path = join(dataDir, secretKeyFile);
  let text: string;
  let created = false;
  try {
    text = await Deno.readTextFile(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    text = `${randomBytes(KEY_BYTES).toString("base64url")}\n`;
    await writeDurably(path, text);
    created = true;
  }
  if (!KEY_TEXT.test(text)) {
    throw new SecretKeyError(
      `${path} is not a secret key: put back the right file, or delete it, which signs everyone out`,
    );
  }
  const wasReadableByOthers = (((await Deno.stat(path)).mode ?? 0) & 0o077) !== 0;
  if (wasReadableByOthers) await Deno.chmod(path, 0o600);
  return { keys: deriveKeys(Buffer.from(text.trimEnd(), "base64url")), created, wasReadableByOthers };
}

/** The keys of a secret of 32 bytes. */
export function deriveKeys(secret: Uint8Array): SecretKeys {
  if (secret.length !== KEY_BYTES) {
    throw new RangeError(`Cannot derive keys from ${secret.length} bytes: a secret has ${KEY_BYTES}`);
  }
  const derive = (use: string) =>
    new Uint8Array(hkdfSync("sha256", secret, new Uint8Array(0), `syncline ${use} v1`, KEY_BYTES));
  return {
    accessTokens: derive("access tokens"),
    tokenHashes: derive("token hashes"),
    refreshTokens: derive("refresh tokens"),
    settings: derive("settings"),
    urlSignatures: derive("url signatures"),
  };
}
