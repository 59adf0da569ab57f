/** The server's secret key file, from which a separate key is derived for each purpose. */
import { Buffer } from "node:buffer";
import { hkdfSync, randomBytes } from "node:crypto";
import { join } from "node:path";
import { writeDurably } from "../kit/durable_files.ts";

/** Name of the file in the data folder. */
export const secretKeyFile = "auth_secret.key";

const KEY_BYTES = 32;
const KEY_TEXT = /^[A-Za-z0-9_-]{43}\n?$/;

/** One 32-byte key for each purpose, so that a leaked key does not affect the others. */
export interface SecretKeys {
  readonly accessTokens: Uint8Array<ArrayBuffer>;
  /** Key of the hashes of stored tokens and codes. */
  readonly tokenHashes: Uint8Array<ArrayBuffer>;
  /** Authenticates refresh tokens. */
  readonly refreshTokens: Uint8Array<ArrayBuffer>;
  /** Encrypts the secrets of authenticator apps. */
  readonly factors: Uint8Array<ArrayBuffer>;
  /** Encrypts secrets in the settings. */
  readonly settings: Uint8Array<ArrayBuffer>;
  /** Signs upload and read URLs. */
  readonly urlSignatures: Uint8Array<ArrayBuffer>;
}

/** The secret key file is unusable; the message says what to do. */
export class SecretKeyError extends Error {
  override readonly name = "SecretKeyError";
}

export interface LoadedSecret {
  readonly keys: SecretKeys;
  /** Whether this call created the file, which means that all users are signed out. */
  readonly created: boolean;
  /** Whether other users could read the file; its mode was changed to 0600. */
  readonly wasReadableByOthers: boolean;
}

/** Reads or creates the secret of a locked data folder. Throws {@linkcode SecretKeyError} for an invalid key. */
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
      `${path} is not a secret key: restore the original file, or delete it, which signs everyone out`,
    );
  }
  const wasReadableByOthers = (((await Deno.stat(path)).mode ?? 0) & 0o077) !== 0;
  if (wasReadableByOthers) await Deno.chmod(path, 0o600);
  return { keys: deriveKeys(Buffer.from(text.trimEnd(), "base64url")), created, wasReadableByOthers };
}

/** Derives the keys from a secret of 32 bytes. */
export function deriveKeys(secret: Uint8Array): SecretKeys {
  if (secret.length !== KEY_BYTES) {
    throw new RangeError(`Cannot derive keys from ${secret.length} bytes: expected ${KEY_BYTES}`);
  }
  const derive = (use: string) =>
    new Uint8Array(hkdfSync("sha256", secret, new Uint8Array(0), `syncline ${use} v1`, KEY_BYTES));
  return {
    accessTokens: derive("access tokens"),
    tokenHashes: derive("token hashes"),
    refreshTokens: derive("refresh tokens"),
    factors: derive("second factors"),
    settings: derive("settings"),
    urlSignatures: derive("url signatures"),
  };
}
