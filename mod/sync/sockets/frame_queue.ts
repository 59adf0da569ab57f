/** Frames of one socket in the order received. Queues those that cannot be handled yet, within limits. */
import { socketLimits } from "../../limits.ts";
import type { ClientMessage } from "../../protocol/client_messages.ts";
import { type ClientFrame, readClientFrame } from "./client_frame.ts";
import type { InboundAccount, InboundQuota } from "./inbound_quota.ts";

/** Handled frames after which the array is compacted. */
const COMPACT_AFTER_FRAMES = 4096;

export class FrameQueue {
  readonly #quota: InboundQuota;
  readonly #account: InboundAccount;
  #frames: string[] = [];
  /** Index of the first unhandled frame. */
  #first = 0;
  /** Characters of the queued frames. */
  #chars = 0;
  /** A parsed message that has to wait. */
  #held: ClientMessage | null = null;
  /** Characters of the frame last returned by `next`. Its recipient releases them. */
  takenChars = 0;

  constructor(quota: InboundQuota, account: InboundAccount) {
    this.#quota = quota;
    this.#account = account;
  }

  /** The message that all frames wait behind. */
  get held(): ClientMessage | null {
    return this.#held;
  }

  /** Adds a frame. Returns whether the limits allowed it. */
  push(text: string): boolean {
    // The next frame is always accepted. The limits apply to frames waiting behind another.
    const waiting = this.#count > 0 || this.#held !== null;
    this.#frames.push(text);
    this.#chars += text.length;
    this.#quota.reserve(this.#account, text.length);
    return !waiting ||
      (this.#count <= socketLimits.heldFramesMax && this.#chars <= socketLimits.heldCharsMax);
  }

  /** Returns the next message or the error in its frame, `null` if there is none. */
  next(): ClientFrame | null {
    if (this.#held !== null) {
      const message = this.#held;
      this.#held = null;
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
    const { heldFramesSlowed, heldCharsSlowed } = socketLimits;
    return Math.max(this.#count / heldFramesSlowed, this.#chars / heldCharsSlowed);
  }

  get #count(): number {
    return this.#frames.length - this.#first;
  }

  /** Puts back the message returned by `next`. */
  hold(message: ClientMessage): void {
    this.#held = message;
  }

  clear(): void {
    this.#quota.release(this.#account, this.#chars + (this.#held === null ? 0 : this.takenChars));
    this.#frames.length = 0;
    this.#first = 0;
    this.#chars = 0;
    this.#held = null;
  }
}
