/** Secrets in the database: encryption, bound to their name and readable with the server's key only, and passwords in URLs. */
import { Buffer } from "node:buffer";
import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";

const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Returns an identifier of a key that reveals nothing about it. */
export function keyName(key: Uint8Array): string {
  return createHash("sha256").update("syncline settings key name").update(key).digest("base64url").slice(
    0,
    12,
  );
}

/** Encrypts a string. It can be decrypted under the same name only. */
export function encryptSecret(
  text: string,
  { key, name }: { readonly key: Uint8Array; readonly name: string },
): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce);
  cipher.setAAD(Buffer.from(name));
  const encrypted = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), encrypted]).toString("base64url");
}

/** Decrypts a string; `null` if it was encrypted with another key or name, or modified. */
export function decryptSecret(
  encrypted: string,
  { key, name }: { readonly key: Uint8Array; readonly name: string },
): string | null {
  const bytes = Buffer.from(encrypted, "base64url");
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return null;
  const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES));
  decipher.setAAD(Buffer.from(name));
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  try {
    const text = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES));
    return Buffer.concat([text, decipher.final()]).toString("utf8");
  } catch {
    return null;
  }
}

/** Encrypts every `{"secret": "..."}` in a JSON string at any depth. Encrypted ones are kept. */
export function encryptNested(
  json: string,
  options: { readonly key: Uint8Array; readonly name: string },
): string {
  const secret = (value: unknown): string | null => {
    if (typeof value !== "object" || value === null) return null;
    const [[name, text] = [], ...more] = Object.entries(value);
    return name === "secret" && typeof text === "string" && more.length === 0 ? text : null;
  };
  const encrypted = JSON.parse(json, (_name, value: unknown) => {
    const text = secret(value);
    return text === null ? value : { sealed: encryptSecret(text, options) };
  });
  return JSON.stringify(encrypted, null, 2);
}

/** Fields whose change does not change the server that a secret of the same object is sent to. */
const SAME_RECIPIENT: ReadonlySet<string> = new Set(["clientId", "linkByEmail", "scope"]);

interface KeptSecret {
  readonly sealed: string;
  /** Such as `providers.work.clientSecret`. */
  readonly path: string;
  /** The other fields of its object. */
  readonly recipient: string;
}

/**
 * Returns the path of the first encrypted secret that must be entered again: it is not stored, or is stored beside other
 * fields, so it might be sent to another server. Returns `null` if there is none.
 */
export function secretToEnterAgain(json: string, stored: string | undefined): string | null {
  const known = [...secretsIn(JSON.parse(stored ?? "null"), [])];
  for (const { sealed, path, recipient } of secretsIn(JSON.parse(json), [])) {
    if (!known.some((each) => each.sealed === sealed && each.recipient === recipient)) return path;
  }
  return null;
}

function* secretsIn(value: unknown, path: readonly string[]): Generator<KeptSecret> {
  if (!isObject(value)) return;
  for (const [name, child] of Object.entries(value)) {
    const at = [...path, name];
    if (isObject(child) && typeof child["sealed"] === "string") {
      // A provider without a preset has the preset of its name.
      const recipient = recipientOf({ preset: path.at(-1), ...value });
      yield { sealed: child["sealed"], path: at.join("."), recipient };
    } else yield* secretsIn(child, at);
  }
}

function recipientOf(fields: Readonly<Record<string, unknown>>): string {
  const named = Object.entries(fields).filter(([name, value]) =>
    !SAME_RECIPIENT.has(name) && !(isObject(value) && ("sealed" in value || "secret" in value))
  );
  return JSON.stringify(named.toSorted(([a], [b]) => a < b ? -1 : 1));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** Returns the URL without its password; an empty string for text that is not a URL with a host. */
export function withoutPassword(text: string): string {
  const url = URL.parse(text);
  if (url === null || url.hostname === "") return "";
  url.password = "";
  return url.href;
}

/**
 * Returns the URL with the password of a stored one, if it has none. Only for the same user and host: the password must not
 * reach another server.
 */
export function withStoredPassword(text: string, stored: string | undefined): string {
  const [url, old] = [URL.parse(text), URL.parse(stored ?? "")];
  if (url === null || old === null || url.password !== "" || url.username === "") return text;
  if (url.username !== old.username || url.hostname !== old.hostname) return text;
  url.password = old.password;
  return url.href;
}
