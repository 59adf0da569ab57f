/** Password rules (AE15), and hashes: argon2id PHC strings, computed off the main thread with bounded concurrency. */
import { Buffer } from "node:buffer";
import { randomBytes, timingSafeEqual } from "node:crypto";
import { authLimits } from "./limits.ts";
import { ServiceError } from "../errors.ts";

/** Cost parameters of an argon2id hash. */
interface Argon2Cost {
  readonly memoryKiB: number;
  readonly passes: number;
  readonly lanes: number;
}

/** OWASP's recommended argon2id parameters with the least memory. */
export const currentCost: Argon2Cost = { memoryKiB: 19_456, passes: 2, lanes: 1 };

const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** Maximum accepted cost of a stored hash, because an imported hash must not be able to stall the server. */
const COST_MAX: Argon2Cost = { memoryKiB: 262_144, passes: 16, lanes: 16 };
const PHC =
  /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{16,86})$/;

interface PasswordHasherOptions {
  readonly cost?: Argon2Cost;
  readonly atOnceMax?: number;
  readonly queuedMax?: number;
}

interface ParsedHash {
  readonly cost: Argon2Cost;
  readonly salt: Uint8Array<ArrayBuffer>;
  readonly hash: Uint8Array<ArrayBuffer>;
}

/** Computes and verifies password hashes. Excess work waits in a bounded queue; beyond it, throws `overloaded`. */
export class PasswordHasher {
  readonly #cost: Argon2Cost;
  readonly #atOnceMax: number;
  readonly #queuedMax: number;
  /** Hash of a random password, verified for unknown accounts so that the timing is the same. */
  readonly #dummy: string;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(
    {
      cost = currentCost,
      atOnceMax = authLimits.hashesAtOnceMax,
      queuedMax = authLimits.hashesQueuedMax,
    }: PasswordHasherOptions = {},
  ) {
    this.#cost = cost;
    this.#atOnceMax = atOnceMax;
    this.#queuedMax = queuedMax;
    this.#dummy = phcText({ cost, salt: randomBytes(SALT_BYTES), hash: randomBytes(HASH_BYTES) });
  }

  async hash(password: string): Promise<string> {
    const salt = new Uint8Array(randomBytes(SALT_BYTES));
    const hash = await this.#derive(password, { cost: this.#cost, salt, bytes: HASH_BYTES });
    return phcText({ cost: this.#cost, salt, hash });
  }

  /** Whether a password matches. Takes the same time without a hash (`stored`) or with a password that cannot be valid. */
  async verify(password: string | null, stored: string | null): Promise<boolean> {
    const parsed = stored === null ? null : parsePhc(stored);
    const { cost, salt, hash } = parsed ?? mustParse(this.#dummy);
    const derived = await this.#derive(password ?? "", { cost, salt, bytes: hash.length });
    const same = timingSafeEqual(derived, hash);
    return same && parsed !== null && password !== null;
  }

  /** Whether a stored hash costs less than the current parameters and should be replaced at sign-in. */
  needsRehash(stored: string): boolean {
    const parsed = parsePhc(stored);
    if (parsed === null) return true;
    const { memoryKiB, passes, lanes } = parsed.cost;
    return memoryKiB < this.#cost.memoryKiB || passes < this.#cost.passes || lanes < this.#cost.lanes;
  }

  async #derive(
    password: string,
    { cost, salt, bytes }: { cost: Argon2Cost; salt: Uint8Array<ArrayBuffer>; bytes: number },
  ): Promise<Uint8Array> {
    await this.#enter();
    try {
      const key = await crypto.subtle.importKey(
        // The type library lacks the argon2 parameters of WebCrypto.
        "raw-secret" as "raw",
        new TextEncoder().encode(password),
        { name: "Argon2id" },
        false,
        ["deriveBits"],
      );
      const { memoryKiB: memory, passes, lanes: parallelism } = cost;
      const algorithm = { name: "Argon2id", nonce: salt, memory, passes, parallelism };
      return new Uint8Array(await crypto.subtle.deriveBits(algorithm, key, bytes * 8));
    } finally {
      this.#leave();
    }
  }

  #enter(): Promise<void> | void {
    if (this.#running < this.#atOnceMax) {
      this.#running++;
      return;
    }
    if (this.#waiting.length >= this.#queuedMax) throw new ServiceError("overloaded");
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #leave(): void {
    const next = this.#waiting.shift();
    // Hand the slot to the longest waiting task.
    if (next) next();
    else this.#running--;
  }
}

function phcText({ cost, salt, hash }: { cost: Argon2Cost; salt: Uint8Array; hash: Uint8Array }): string {
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64").replaceAll("=", "");
  return `$argon2id$v=19$m=${cost.memoryKiB},t=${cost.passes},p=${cost.lanes}$${text(salt)}$${text(hash)}`;
}

function parsePhc(text: string): ParsedHash | null {
  const match = PHC.exec(text);
  if (!match) return null;
  const [, memory, passes, lanes, salt = "", hash = ""] = match;
  const cost = { memoryKiB: Number(memory), passes: Number(passes), lanes: Number(lanes) };
  const { memoryKiB, passes: passesMax, lanes: lanesMax } = COST_MAX;
  if (cost.memoryKiB > memoryKiB || cost.passes > passesMax || cost.lanes > lanesMax) return null;
  if (cost.passes < 1 || cost.lanes < 1 || cost.memoryKiB < 8 * cost.lanes) return null;
  const bytes = (part: string) => new Uint8Array(Buffer.from(part, "base64"));
  return { cost, salt: bytes(salt), hash: bytes(hash) };
}

function mustParse(text: string): ParsedHash {
  const parsed = parsePhc(text);
  if (parsed === null) throw new TypeError("Cannot parse the hash just made");
  return parsed;
}

/** Normalizes a password. Throws `weak_password` under 8 code points and `invalid_password` over 256. */
export function checkedPassword(password: string): string {
  const normalized = normalizedPassword(password);
  if (normalized === null) throw new ServiceError("invalid_password");
  if (charCount(normalized) < authLimits.passwordCharsMin) throw new ServiceError("weak_password");
  return normalized;
}

/** Like {@linkcode checkedPassword} for a sign-in: returns `null` if the password cannot be valid. */
export function normalizedPassword(password: string): string | null {
  if (!password.isWellFormed()) return null;
  const normalized = password.normalize("NFC");
  return charCount(normalized) > authLimits.passwordCharsMax ? null : normalized;
}

function charCount(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
