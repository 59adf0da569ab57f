/** Tracks pings, silence, token expiry and stalled sends of one socket. Pure: the hub polls it with the current time. */
import { socketLimits } from "../../limits.ts";

/** An item of the wheel. It is in at most one slot. */
export interface Timed {
  /** Its slot, or -1. Set by the wheel only. */
  slot: number;
}

/** A timer wheel for the deadlines of all sockets. Finds due items without visiting the others. */
export class TimerWheel<Item extends Timed> {
  readonly #slots = new Map<number, Set<Item>>();
  readonly #slotMs: number;
  #currentSlot: number;

  constructor(now: number, slotMs: number) {
    this.#slotMs = slotMs;
    this.#currentSlot = Math.floor(now / slotMs);
  }

  /** Schedules an item for `at`, rounded up to a slot. Replaces its previous deadline. */
  schedule(item: Item, at: number): void {
    const slot = Math.max(Math.ceil(at / this.#slotMs), this.#currentSlot + 1);
    if (item.slot === slot) return;
    this.remove(item);
    item.slot = slot;
    const items = this.#slots.get(slot);
    if (items === undefined) this.#slots.set(slot, new Set([item]));
    else items.add(item);
  }

  remove(item: Item): void {
    const items = this.#slots.get(item.slot);
    if (items?.delete(item) && items.size === 0) this.#slots.delete(item.slot);
    item.slot = -1;
  }

  /** Removes and returns the items due by `now`. */
  advance(now: number): Item[] {
    const target = Math.floor(now / this.#slotMs);
    const due: Item[] = [];
    // After a long pause fewer slots are in use than have passed.
    const slots = target - this.#currentSlot > this.#slots.size
      ? [...this.#slots.keys()].filter((slot) => slot <= target).sort((a, b) => a - b)
      : Array.from({ length: Math.max(0, target - this.#currentSlot) }, (_, i) => this.#currentSlot + 1 + i);
    for (const slot of slots) {
      for (const item of this.#slots.get(slot) ?? []) {
        item.slot = -1;
        due.push(item);
      }
      this.#slots.delete(slot);
    }
    this.#currentSlot = Math.max(this.#currentSlot, target);
    return due;
  }
}

/** An action that is due. */
export type HeartbeatEvent = "ping" | "silent" | "expired" | "stuck";

export interface SocketActivity {
  /** Frames are queued behind a call. The client's Pongs are not handled, so silence does not count. */
  readonly blocked: boolean;
  /** A token is being verified. It may replace one that expires in the meantime. */
  readonly verifying: boolean;
  readonly bufferedBytes: number;
}

export class SocketHeartbeat {
  /** When the caller's token expires, `null` for never. Set by the connection. */
  expiresAt: number | null = null;
  #lastReceivedAt: number;
  #nextPingAt: number;
  /** Total bytes sent. */
  #queuedBytes = 0;
  /** Send position at time `at` that has not been transmitted yet. `null` when the buffer is empty. */
  #sending: { readonly bytes: number; readonly at: number } | null = null;

  constructor(now: number) {
    this.#lastReceivedAt = now;
    this.#nextPingAt = now + socketLimits.pingIntervalMs;
  }

  received(now: number): void {
    this.#lastReceivedAt = now;
  }

  queued(bytes: number): void {
    this.#queuedBytes += bytes;
  }

  /** When to call `check` at the latest. */
  get nextAt(): number {
    const sentBy = this.#sending === null ? Infinity : this.#sending.at + socketLimits.frameSendMs;
    return Math.min(this.#nextPingAt, this.expiresAt ?? Infinity, sentBy);
  }

  /** Returns the due action. "ping" is returned once per interval. The others end the socket. */
  check(now: number, view: SocketActivity): HeartbeatEvent | null {
    if (this.expiresAt !== null && now >= this.expiresAt && !view.verifying) return "expired";
    if (this.#sendStalled(now, view.bufferedBytes)) return "stuck";
    if (view.blocked) this.#lastReceivedAt = now;
    if (now < this.#nextPingAt) return null;
    if (now - this.#lastReceivedAt >= socketLimits.silenceMs) return "silent";
    this.#nextPingAt = Math.max(this.#nextPingAt + socketLimits.pingIntervalMs, now);
    return "ping";
  }

  #sendStalled(now: number, bufferedBytes: number): boolean {
    if (this.#sending !== null && this.#queuedBytes - bufferedBytes >= this.#sending.bytes) {
      this.#sending = null;
    }
    if (bufferedBytes === 0) return false;
    this.#sending ??= { bytes: this.#queuedBytes, at: now };
    return now - this.#sending.at >= socketLimits.frameSendMs;
  }
}
