/**
 * Decides when to poll: if WebSockets are blocked (by a proxy or firewall) and HTTP works. Runs next to the connection, which
 * keeps trying to open a socket.
 *
 * ```text
 *   off ──3 attempts opened nothing, or 10 s without a socket──▶ probing ──no answer──▶ off, until an attempt fails
 *    ▲                                                            │
 *    │                                                            │ HTTP works: one more attempt, at once
 *    │                                                            ▼
 *    ├───────────── a socket opens (from any state) ───────────  doubting
 *    │                                                            │
 *    │                                                            │ it fails, or has not opened after 2 s
 *    │                                                            ▼
 *    └───────────── a socket opens, HTTP fails ────────────────  polling
 *
 *    any state ──the connection is paused or stopped──▶ off
 * ```
 */
import { Alarm, type Clock } from "../clock.ts";
import * as clientLimits from "../limits.ts";

export type FallbackPhase = "off" | "probing" | "doubting" | "polling";

/** The part of the connection state used here. */
export interface ConnectionView {
  readonly phase: string;
  /** Consecutive attempts that opened no socket. */
  readonly unopened: number;
}

/** Actions requested by the fallback. */
export interface FallbackOwner {
  /** Tests whether HTTP works. Never rejects. */
  probe(): Promise<boolean>;
  /** Starts the next attempt to open a socket now, if one is scheduled. */
  trySocket(): void;
  /** Polling starts. */
  pollingBegins(): void;
  /** Polling ends: a socket opened, HTTP failed, or the client was paused or closed. */
  pollingEnds(): void;
}

export class Fallback {
  readonly #owner: FallbackOwner;
  #phase: FallbackPhase = "off";
  #connection: ConnectionView = { phase: "idle", unopened: 0 };
  /** Timer of the time without a socket, then of the `doubting` state. */
  readonly #alarm: Alarm;
  /** Number of probes started; results of older ones are ignored. */
  #probes = 0;
  /** Whether there has been no socket for long; reset when one opens. */
  #late = false;

  constructor(clock: Clock, owner: FallbackOwner) {
    this.#owner = owner;
    this.#alarm = new Alarm(clock);
  }

  get phase(): FallbackPhase {
    return this.#phase;
  }

  /** Call after each change of the connection. */
  connectionChanged({ phase, unopened }: ConnectionView): void {
    const failed = unopened > this.#connection.unopened;
    this.#connection = { phase, unopened };
    if (phase !== "connecting" && phase !== "waiting") return this.#off({ late: false });
    if (this.#phase === "doubting" && failed) return this.#poll();
    if (this.#phase !== "off") return;
    if (failed && (this.#late || unopened >= clientLimits.attemptsBeforePolling)) return this.#probe();
    if (this.#late || this.#alarm.isSet) return;
    this.#alarm.set(clientLimits.waitBeforePollingMs, () => {
      this.#late = true;
      this.#probe();
    });
  }

  /** Polling got no response. HTTP is probed again when the next attempt fails. */
  httpFailed(): void {
    if (this.#phase === "polling") this.#off({ late: true });
  }

  #probe(): void {
    const probe = ++this.#probes;
    this.#phase = "probing";
    this.#alarm.clear();
    void this.#owner.probe().then((works) => {
      if (this.#phase !== "probing" || probe !== this.#probes) return;
      if (!works) return this.#off({ late: true });
      this.#phase = "doubting";
      this.#alarm.set(clientLimits.doubtMs, () => this.#poll());
      this.#owner.trySocket();
    });
  }

  #poll(): void {
    this.#alarm.clear();
    this.#phase = "polling";
    this.#owner.pollingBegins();
  }

  #off({ late }: { readonly late: boolean }): void {
    const wasPolling = this.#phase === "polling";
    this.#alarm.clear();
    this.#late = late;
    this.#phase = "off";
    if (wasPolling) this.#owner.pollingEnds();
  }
}
