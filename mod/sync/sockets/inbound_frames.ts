/** Frames from the client: size and rate limits, inbound quotas, and a queue that handles them in order. */
import { socketLimits } from "../../limits.ts";
import { type ClientMessage, clientMessageSchema } from "../../protocol/client_messages.ts";
import { closeCodes } from "./socket.ts";

type ClientFrame =
  | { readonly ok: true; readonly message: ClientMessage }
  | { readonly ok: false; readonly fault: string; readonly closeCode: number };

/** Characters of client text quoted in an error. */
const QUOTED_CHARS_MAX = 100;

function readClientFrame(text: string): ClientFrame {
  if (text.length > socketLimits.frameCharsMax) {
    const fault = `frame too long: ${text.length} characters, the limit is ${socketLimits.frameCharsMax}`;
    return { ok: false, fault, closeCode: closeCodes.tooLong };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "not JSON";
    return { ok: false, fault: `malformed JSON: ${quote(reason)}`, closeCode: closeCodes.malformed };
  }
  const parsed = clientMessageSchema.safeParse(value);
  if (parsed.success) return { ok: true, message: parsed.data };
  const type = typeof value === "object" && value !== null ? (value as { type?: unknown }).type : undefined;
  const issue = parsed.error.issues[0];
  const fault = issue?.path.length === 1 && issue.path[0] === "type" && issue.code === "invalid_union"
    ? `unknown message type ${quote(JSON.stringify(type) ?? "undefined")}`
    : `${typeof type === "string" ? quote(type) : "message"}: ${pathText(issue?.path ?? [])}${
      issue?.message ?? "invalid"
    }`;
  return { ok: false, fault, closeCode: closeCodes.protocol };
}

function pathText(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "";
  const text = path.map((step) => typeof step === "number" ? `[${step}]` : `.${String(step)}`).join("");
  return `${text.replace(/^\./, "")}: `;
}

function quote(text: string): string {
  return (text.length > QUOTED_CHARS_MAX ? `${text.slice(0, QUOTED_CHARS_MAX)}...` : text).toWellFormed();
}

export interface FrameRate {
  readonly burst: number;
  readonly perSecond: number;
}

export class FrameRateLimiter {
  readonly #rate: FrameRate;
  #tokens: number;
  #refilledAt: number;

  constructor(rate: FrameRate, now: number) {
    this.#rate = rate;
    this.#tokens = rate.burst;
    this.#refilledAt = now;
  }

  /** Counts a frame. Returns whether it is allowed. */
  take(now: number): boolean {
    if (--this.#tokens >= 0) return true;
    const { burst, perSecond } = this.#rate;
    // Reads the clock only when the tokens are used up. A clock set back refills nothing.
    const refilled = Math.min(
      burst,
      this.#tokens + 1 + Math.max(0, now - this.#refilledAt) * perSecond / 1000,
    );
    this.#tokens = refilled - 1;
    this.#refilledAt = now;
    return this.#tokens >= 0;
  }
}

export class InboundAccount {
  chars = 0;
  /** Ends the socket. Memory of its calls is released when they end. */
  readonly end: () => void;

  constructor(end: () => void) {
    this.end = end;
  }
}

/** Quota of all received data in memory: frames, calls, arguments of queries. Exceeding it ends the largest socket. */
export class InboundQuota {
  readonly #charsMax: number;
  readonly #accounts = new Set<InboundAccount>();
  #chars = 0;

  constructor(charsMax: number) {
    this.#charsMax = charsMax;
  }

  get chars(): number {
    return this.#chars;
  }

  open(end: () => void): InboundAccount {
    const account = new InboundAccount(end);
    this.#accounts.add(account);
    return account;
  }

  /** Unregisters a closed socket. Its calls release their share when they end. */
  close(account: InboundAccount): void {
    this.#accounts.delete(account);
  }

  reserve(account: InboundAccount, chars: number): void {
    account.chars += chars;
    this.#chars += chars;
    if (this.#chars > this.#charsMax && chars > 0) this.#endLargest();
  }

  release(account: InboundAccount, chars: number): void {
    account.chars -= chars;
    this.#chars -= chars;
  }

  /** Ends the largest sockets until usage is within the quota, unless it belongs to calls of closed sockets. */
  #endLargest(): void {
    const { inboundExemptCharsMin, inboundExemptCharsMax } = socketLimits;
    while (this.#chars > this.#charsMax) {
      const share = this.#charsMax / (4 * this.#accounts.size);
      const exemptChars = Math.min(Math.max(share, inboundExemptCharsMin), inboundExemptCharsMax);
      let largest: InboundAccount | null = null;
      for (const account of this.#accounts) {
        if (account.chars > (largest?.chars ?? exemptChars)) largest = account;
      }
      if (largest === null) return;
      this.#accounts.delete(largest);
      largest.end();
    }
  }
}

const COMPACT_AFTER_FRAMES = 4096;

/** Frames of one socket in the order received. Queues those that cannot be handled yet, within limits. */
export class FrameQueue {
  readonly #quota: InboundQuota;
  readonly #account: InboundAccount;
  #frames: string[] = [];
  #first = 0;
  #chars = 0;
  /** A parsed message that has to wait. */
  #blocked: ClientMessage | null = null;
  /** Characters of the frame last returned by `next`. Its recipient releases them. */
  takenChars = 0;

  constructor(quota: InboundQuota, account: InboundAccount) {
    this.#quota = quota;
    this.#account = account;
  }

  get blocked(): ClientMessage | null {
    return this.#blocked;
  }

  /** Adds a frame. Returns whether the limits allowed it. */
  push(text: string): boolean {
    // The next frame is always accepted. The limits apply to frames waiting behind another.
    const waiting = this.#count > 0 || this.#blocked !== null;
    this.#frames.push(text);
    this.#chars += text.length;
    this.#quota.reserve(this.#account, text.length);
    return !waiting ||
      (this.#count <= socketLimits.queuedFramesMax && this.#chars <= socketLimits.queuedCharsMax);
  }

  /** Returns the next message or the error in its frame, `null` if there is none. */
  next(): ClientFrame | null {
    if (this.#blocked !== null) {
      const message = this.#blocked;
      this.#blocked = null;
      return { ok: true, message };
    }
    const text = this.#frames[this.#first];
    if (text === undefined) return null;
    this.#frames[this.#first++] = "";
    this.#chars -= text.length;
    this.takenChars = text.length;
    if (this.#first === this.#frames.length) {
      this.#frames.length = this.#first = 0;
    } else if (this.#first === COMPACT_AFTER_FRAMES) {
      // Shifting the array for each frame would take quadratic time.
      this.#frames = this.#frames.slice(this.#first);
      this.#first = 0;
    }
    return readClientFrame(text);
  }

  /** Fill level, without the message that all frames wait behind. Above 1, the receive window shrinks. */
  get fullness(): number {
    const { slowedFramesMin, slowedCharsMin } = socketLimits;
    return Math.max(this.#count / slowedFramesMin, this.#chars / slowedCharsMin);
  }

  get #count(): number {
    return this.#frames.length - this.#first;
  }

  /** Puts back the message returned by `next`. */
  hold(message: ClientMessage): void {
    this.#blocked = message;
  }

  clear(): void {
    this.#quota.release(this.#account, this.#chars + (this.#blocked === null ? 0 : this.takenChars));
    this.#frames.length = 0;
    this.#first = 0;
    this.#chars = 0;
    this.#blocked = null;
  }
}
