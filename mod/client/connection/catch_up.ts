/**
 * Keeps the view from going back after polling. A mutation over HTTP tells the ts of its writes, and polling has shown
 * them; a new socket may begin at a snapshot a little older. Its Transitions wait until one is new enough.
 */
import type { Transition } from "../../protocol/server_messages.ts";
import { Alarm, type Clock } from "../clock.ts";
import * as clientLimits from "../limits.ts";

export class CatchUp {
  readonly #apply: (transitions: readonly Transition[]) => void;
  /** The newest ts whose writes were shown by polling; -1 when a socket has shown them as well. */
  #shownTs = -1;
  /** Transitions that wait, oldest first. */
  #waiting: Transition[] = [];
  /** Ends the wait: a server whose data went back to an earlier state never gets to the ts. */
  readonly #patience: Alarm;

  /** `apply` applies Transitions in order and shows what they add up to. */
  constructor(clock: Clock, apply: (transitions: readonly Transition[]) => void) {
    this.#apply = apply;
    this.#patience = new Alarm(clock);
  }

  /** Polling has shown all writes up to a ts. */
  shown(ts: number): void {
    this.#shownTs = Math.max(this.#shownTs, ts);
  }

  /** Applies a Transition, now or together with one that is new enough. */
  take(transition: Transition): void {
    this.#waiting.push(transition);
    if (transition.endVersion.ts >= this.#shownTs || this.#waiting.length >= clientLimits.catchUpMax) {
      return this.#release();
    }
    if (!this.#patience.isSet) this.#patience.set(clientLimits.catchUpMs, () => this.#release());
  }

  /** The socket is gone, and what it brought with it. */
  stop(): void {
    this.#waiting = [];
    this.#patience.clear();
  }

  #release(): void {
    const waiting = this.#waiting;
    this.stop();
    this.#shownTs = -1;
    this.#apply(waiting);
  }
}
