/** Frames of one socket in the order they came. Those that may not be served yet wait here, within bounds. */
import { socketLimits } from "../../limits.ts";
import type { ClientMessage } from "../../protocol/client_messages.ts";
import { type ClientFrame, readClientFrame } from "./client_frame.ts";
import type { HeldAccount, HeldBudget } from "./held_budget.ts";

/** Served frames after which their places are given back. */
const COMPACTED_FRAMES = 4096;

export class Inbound {
  readonly #budget: HeldBudget;
  readonly #account: HeldAccount;
  #frames: string[] = [];
  /** Frames before this one have been served. */
  #first = 0;
  /** Characters of the frames that wait. */
  #chars = 0;
  /** Read already, but not to be served yet. */
  #held: ClientMessage | null = null;
  /** Characters of the frame that `next` gave last. Whoever took it gives them back to the budget. */
  takenChars = 0;

  constructor(budget: HeldBudget, account: HeldAccount) {
    this.#budget = budget;
    this.#account = account;
  }

  /** The message that everything waits behind. */
  get held(): ClientMessage | null {
    return this.#held;
  }

  /** Adds a frame. Returns whether there was room. */
  push(text: string): boolean {
    // The frame to be served next is always taken: bounds are for what waits behind another.
    const waiting = this.#count > 0 || this.#held !== null;
    this.#frames.push(text);
    this.#chars += text.length;
    this.#budget.hold(this.#account, text.length);
    return !waiting ||
      (this.#count <= socketLimits.heldFramesMax && this.#chars <= socketLimits.heldCharsMax);
  }

  /** The next message, or what is wrong with its frame; `null` when there is none. */
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
    } else if (this.#first === COMPACTED_FRAMES) {
      // Moving the rest up for each frame would cost the square of a long line.
      this.#frames = this.#frames.slice(this.#first);
      this.#first = 0;
    }
    return readClientFrame(text);
  }

  /** How full it is, but for the message that everything waits behind: from 1 on more waits than is good for others. */
  get fullness(): number {
    const { heldFramesSlowed, heldCharsSlowed } = socketLimits;
    return Math.max(this.#count / heldFramesSlowed, this.#chars / heldCharsSlowed);
  }

  get #count(): number {
    return this.#frames.length - this.#first;
  }

  /** Puts back the message `next` gave: it has to wait. */
  hold(message: ClientMessage): void {
    this.#held = message;
  }

  clear(): void {
    this.#budget.release(this.#account, this.#chars + (this.#held === null ? 0 : this.takenChars));
    this.#frames.length = 0;
    this.#first = 0;
    this.#chars = 0;
    this.#held = null;
  }
}
