/** Frames of one socket in the order they came. Those that may not be served yet wait here, within bounds. */
import { socketLimits } from "../limits.ts";
import type { ClientMessage } from "../protocol/client_messages.ts";
import { type ClientFrame, readClientFrame } from "./client_frame.ts";

export class Inbound {
  readonly #frames: string[] = [];
  #chars = 0;
  /** Read already, but not to be served yet. */
  #held: ClientMessage | null = null;

  /** The message that everything waits behind. */
  get held(): ClientMessage | null {
    return this.#held;
  }

  /** Adds a frame. Returns whether there was room. */
  push(text: string): boolean {
    // The frame to be served next is always taken: bounds are for what waits behind another.
    const waiting = this.#frames.length > 0 || this.#held !== null;
    this.#frames.push(text);
    this.#chars += text.length;
    return !waiting ||
      (this.#frames.length <= socketLimits.heldFramesMax && this.#chars <= socketLimits.heldCharsMax);
  }

  /** The next message, or what is wrong with its frame; `null` when there is none. */
  next(): ClientFrame | null {
    if (this.#held !== null) {
      const message = this.#held;
      this.#held = null;
      return { ok: true, message };
    }
    const text = this.#frames.shift();
    if (text === undefined) return null;
    this.#chars -= text.length;
    return readClientFrame(text);
  }

  /** Puts back the message `next` gave: it has to wait. */
  hold(message: ClientMessage): void {
    this.#held = message;
  }

  clear(): void {
    this.#frames.length = 0;
    this.#chars = 0;
    this.#held = null;
  }
}
