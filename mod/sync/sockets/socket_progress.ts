/** Sockets that cannot show the newest commit: because results are missing, or because commits have not arrived here. */
import { socketLimits } from "../../limits.ts";
import { sharedQueryLimits } from "../limits.ts";
import type { View } from "../queries/shared_query.ts";

/** Stuck sockets considered when a refresh batch is planned. */
const STUCK_SOCKETS_MAX = 32;

/** A socket as far as its progress is concerned. */
export interface ProgressingSocket extends View {
  readonly isOpen: boolean;
  /** Newest ts at which all results are known, or `null`. */
  readonly reachableTs: number | null;
  /** The ts required for the next Transition, or `null`. */
  readonly awaitedTs: number | null;
  /** Shows the newest commit here instead of an awaited one that does not arrive. */
  lowerMinTs(): void;
}

interface Lag {
  /** When the socket fell behind or last made progress. */
  readonly since: number;
  /** The `reachableTs` at that time, 0 if it was `null`. */
  readonly reachedTs: number;
}

export class SocketProgress {
  readonly #now: () => number;
  readonly #newest: { readonly ts: number };
  /** Sockets behind the newest commit. Those without progress for longest come first. */
  readonly #behind = new Map<ProgressingSocket, Lag>();
  /** Sockets that wait for commits, by the time they began to wait. */
  readonly #awaiting = new Map<ProgressingSocket, number>();

  /** @param newest Its `ts` is the newest commit known here. */
  constructor(now: () => number, newest: { readonly ts: number }) {
    this.#now = now;
    this.#newest = newest;
  }

  /** Call after the socket advanced. */
  update(socket: ProgressingSocket): void {
    if (!socket.isOpen) return this.remove(socket);
    const { reachableTs: reach, awaitedTs } = socket;
    if (reach !== null && reach >= this.#newest.ts) this.#behind.delete(socket);
    else this.#trackLag(socket, reach);
    if (awaitedTs === null || awaitedTs <= this.#newest.ts) this.#awaiting.delete(socket);
    else if (!this.#awaiting.has(socket)) this.#awaiting.set(socket, this.#now());
  }

  remove(socket: ProgressingSocket): void {
    this.#behind.delete(socket);
    this.#awaiting.delete(socket);
  }

  /** Sockets without progress for `sharedQueryLimits.stuckSocketMs`, longest first. */
  *stuck(): Generator<View> {
    const before = this.#now() - sharedQueryLimits.stuckSocketMs;
    let count = 0;
    for (const [socket, { since }] of this.#behind) {
      if (since > before || ++count > STUCK_SOCKETS_MAX) return;
      yield socket;
    }
  }

  /** Advances sockets whose awaited ts has now been reached. */
  commitsArrived(): void {
    for (const socket of this.#awaiting.keys()) {
      if ((socket.awaitedTs ?? 0) <= this.#newest.ts) socket.needsAdvance();
    }
  }

  /** Lowers the minimum of sockets that have waited for `socketLimits.observedTsWaitMs`. */
  tick(now: number): void {
    for (const [socket, since] of this.#awaiting) {
      if (since + socketLimits.observedTsWaitMs <= now) socket.lowerMinTs();
    }
  }

  #trackLag(socket: ProgressingSocket, reach: number | null): void {
    const lag = this.#behind.get(socket);
    if (lag !== undefined && (reach ?? 0) <= lag.reachedTs) return;
    // After progress it counts as behind from now, at the end of the map.
    this.#behind.delete(socket);
    this.#behind.set(socket, { since: this.#now(), reachedTs: reach ?? 0 });
  }
}
