/** Timers of all sockets. They run only while there are sockets. */
import type { Clock, Timer } from "../../kit/clock.ts";
import { socketLimits } from "../../limits.ts";

/** An item of the wheel. It is in at most one slot. */
interface Timed {
  /** Its slot, or -1. Set by the wheel only. */
  slot: number;
}

/** A timer wheel for the deadlines of all sockets. Finds due items without visiting the others. */
class TimerWheel<Item extends Timed> {
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

/** A socket as far as its timers are concerned. */
export interface TimedSocket extends Timed {
  readonly isOpen: boolean;
  /** When `checkDeadlines` is due at the latest, by the clock of the timers. */
  readonly nextDeadline: number;
  /** Whether no Transition can be sent to it now. */
  readonly blocked: boolean;
  checkDeadlines(now: number): void;
  needsAdvance(): void;
}

export interface SocketTimersOptions {
  readonly clock: Clock;
  /** Called every `socketLimits.tickMs`, after the deadlines of sockets were checked. */
  readonly onTick: (now: number) => void;
}

/** Checks the deadlines of each socket when they are due, and polls sockets that are blocked until they can advance. */
export class SocketTimers {
  readonly #options: SocketTimersOptions;
  readonly #wheel: TimerWheel<TimedSocket>;
  readonly #blocked = new Set<TimedSocket>();
  #ticking: Timer | null = null;
  #polling: Timer | null = null;

  constructor(options: SocketTimersOptions) {
    this.#options = options;
    this.#wheel = new TimerWheel(options.clock.now(), socketLimits.tickMs);
  }

  /** Whether a socket is blocked: its client reads slowly. */
  get polls(): boolean {
    return this.#blocked.size > 0;
  }

  /** Adds a socket, or updates its deadline. */
  schedule(socket: TimedSocket): void {
    this.#wheel.schedule(socket, socket.nextDeadline);
    this.#ticking ??= this.#options.clock.every(socketLimits.tickMs, () => this.#tick());
  }

  /** Advances a socket when it is no longer blocked. */
  pollUntilFree(socket: TimedSocket): void {
    this.#blocked.add(socket);
    this.#polling ??= this.#options.clock.every(socketLimits.drainPollMs, () => this.#poll());
  }

  remove(socket: TimedSocket): void {
    this.#wheel.remove(socket);
    this.#blocked.delete(socket);
  }

  /** Call without sockets. */
  stop(): void {
    this.#ticking?.cancel();
    this.#ticking = null;
    this.#stopPolling();
  }

  #tick(): void {
    const { clock, onTick } = this.#options;
    const now = clock.now();
    for (const socket of this.#wheel.advance(now)) {
      socket.checkDeadlines(now);
      if (socket.isOpen) this.#wheel.schedule(socket, socket.nextDeadline);
    }
    onTick(now);
  }

  #poll(): void {
    const now = this.#options.clock.now();
    for (const socket of this.#blocked) {
      socket.checkDeadlines(now);
      if (socket.blocked) continue;
      this.#blocked.delete(socket);
      socket.needsAdvance();
    }
    if (this.#blocked.size === 0) this.#stopPolling();
  }

  #stopPolling(): void {
    this.#polling?.cancel();
    this.#polling = null;
  }
}
