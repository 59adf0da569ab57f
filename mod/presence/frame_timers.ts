/** Sends the frames of rooms: changes of a room wait for a short interval and leave in one frame. */
import type { Clock, Timer } from "../kit/clock.ts";
import { presenceLimits } from "./limits.ts";
import type { Room } from "./room.ts";

export class FrameTimers implements Disposable {
  readonly #clock: Clock;
  /** Rooms with changes, or with subscribers that wait for a whole frame. */
  readonly #timers = new Map<Room, Timer>();
  readonly #onSent: (room: Room) => void;

  /** @param onSent Called after each frame of a room. */
  constructor(clock: Clock, onSent: (room: Room) => void) {
    this.#clock = clock;
    this.#onSent = onSent;
  }

  schedule(room: Room): void {
    if (this.#timers.has(room)) return;
    // Rooms with many members or long frames send fewer of them.
    const { frameMs, membersPerFrameMs, frameMsMax, frameCharsPerMs } = presenceLimits;
    const wantedMs = Math.max(room.members.size / membersPerFrameMs, room.sentChars / frameCharsPerMs);
    const ms = Math.min(frameMsMax, Math.max(frameMs, wantedMs));
    this.#timers.set(room, this.#clock.after(ms, () => this.send(room)));
  }

  /** Sends a frame now. */
  send(room: Room): void {
    this.#timers.get(room)?.cancel();
    this.#timers.delete(room);
    if (!room.deliver(room.takeChanges())) this.schedule(room);
    this.#onSent(room);
  }

  [Symbol.dispose](): void {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }
}
