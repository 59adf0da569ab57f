/** Frames from the client: size and rate limits, inbound quotas, and a queue that handles them in order. */
import { socketLimits } from "../../limits.ts";
import { type ClientMessage, clientMessageSchema } from "../../protocol/client_messages.ts";
import { closeCodes, type ReceiveWindow } from "./socket.ts";

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

  /**
   * Ends the largest sockets until usage is within the quota. Sockets far below an equal share are exempt: the usage then
   * belongs to calls of closed sockets.
   */
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

export interface FrameQueueOptions {
  readonly quota: InboundQuota;
  readonly now: number;
  /** Called if the quota is exhausted and the socket has to end. */
  readonly onOverload: () => void;
  readonly setReceiveWindow: (window: ReceiveWindow) => void;
}

/** Frames of one socket in the order received, within its limits. Queues those that cannot be handled yet. */
export class FrameQueue {
  readonly #options: FrameQueueOptions;
  readonly #account: InboundAccount;
  readonly #rate: FrameRateLimiter;
  readonly #idleRate: FrameRateLimiter;
  /** "small" while many frames wait: the runtime reads everything a socket has received before it serves others. */
  #window: ReceiveWindow = "normal";
  #frames: string[] = [];
  #first = 0;
  #chars = 0;
  /** A parsed message that has to wait. */
  #blocked: ClientMessage | null = null;
  /** Characters of the frame last returned by `next`. Its recipient releases them. */
  takenChars = 0;

  constructor(options: FrameQueueOptions) {
    this.#options = options;
    this.#account = options.quota.open(options.onOverload);
    this.#rate = new FrameRateLimiter(socketLimits.frames, options.now);
    this.#idleRate = new FrameRateLimiter(socketLimits.idleFrames, options.now);
  }

  get blocked(): ClientMessage | null {
    return this.#blocked;
  }

  /** Counts a frame that does not queue. Returns whether the limits allow it. */
  takeIdle(now: number): boolean {
    return this.#idleRate.take(now);
  }

  /** Adds a frame. Returns the limit that it exceeds, if any. */
  push(text: string, now: number): "rate" | "queue" | null {
    if (!this.#rate.take(now)) return "rate";
    // The next frame is always accepted. The limits apply to frames waiting behind another.
    const waiting = this.#count > 0 || this.#blocked !== null;
    this.#frames.push(text);
    this.#chars += text.length;
    this.reserve(text.length);
    const { queuedFramesMax, queuedCharsMax } = socketLimits;
    return waiting && (this.#count > queuedFramesMax || this.#chars > queuedCharsMax) ? "queue" : null;
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

  /** Adapts the receive window to the frames that wait, without the message that all of them wait behind. */
  adaptReceiveWindow(): void {
    const { slowedFramesMin, slowedCharsMin } = socketLimits;
    const fullness = Math.max(this.#count / slowedFramesMin, this.#chars / slowedCharsMin);
    const window = fullness > 1 ? "small" : fullness < 0.25 ? "normal" : this.#window;
    if (window === this.#window) return;
    this.#window = window;
    this.#options.setReceiveWindow(window);
  }

  /** Counts data that a frame leaves in memory. */
  reserve(chars: number): void {
    this.#options.quota.reserve(this.#account, chars);
  }

  release(chars: number): void {
    this.#options.quota.release(this.#account, chars);
  }

  get #count(): number {
    return this.#frames.length - this.#first;
  }

  /** Puts back the message returned by `next`. */
  hold(message: ClientMessage): void {
    this.#blocked = message;
  }

  /** Drops all frames when the socket ends. Its calls in flight release their share when they end. */
  close(): void {
    this.release(this.#chars + (this.#blocked === null ? 0 : this.takenChars));
    this.#options.quota.close(this.#account);
    this.#frames.length = 0;
    this.#first = 0;
    this.#chars = 0;
    this.#blocked = null;
  }
}
