/**
 * Decides when to poll: where WebSockets are blocked (a proxy, a firewall) and HTTP is not. Runs beside the connection,
 * which goes on trying to open a socket.
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
 * ```
 */
import { Alarm, type Clock } from "../clock.ts";
import * as clientLimits from "../limits.ts";

export type FallbackPhase = "off" | "probing" | "doubting" | "polling";

/** What the connection looks like from here. */
export interface ConnectionView {
  readonly phase: string;
  /** Attempts in a row that opened no socket. */
  readonly unopened: number;
}

/** What the fallback asks for. */
export interface FallbackOwner {
  /** Whether HTTP works: resolves, never rejects. */
  probe(): Promise<boolean>;
  /** Begins the next attempt to open a socket now, if it is being waited for. */
  trySocket(): void;
  /** Polling begins. */
  pollingBegins(): void;
  /** Polling ends: a socket opened, HTTP failed, or the client was closed. */
  pollingEnds(): void;
}

export class Fallback {
  readonly #owner: FallbackOwner;
  #phase: FallbackPhase = "off";
  #connection: ConnectionView = { phase: "idle", unopened: 0 };
  /** Ends the time without a socket, then the doubt. */
  readonly #alarm: Alarm;
  /** Probes begun: the answer to an older one counts for nothing. */
  #probes = 0;
  /** Whether the time without a socket has been long; cleared when one opens. */
  #late = false;

  constructor(clock: Clock, owner: FallbackOwner) {
    this.#owner = owner;
    this.#alarm = new Alarm(clock);
  }

  get phase(): FallbackPhase {
    return this.#phase;
  }

  /** To be called after each change of the connection. */
  connectionChanged({ phase, unopened }: ConnectionView): void {
    const failed = unopened > this.#connection.unopened;
    this.#connection = { phase, unopened };
    if (phase === "open" || phase === "stopped") return this.#off({ late: false });
    if (this.#phase === "doubting" && failed) return this.#poll();
    if (this.#phase !== "off") return;
    if (failed && (this.#late || unopened >= clientLimits.attemptsBeforePolling)) return this.#probe();
    if (this.#late || this.#alarm.isSet) return;
    this.#alarm.set(clientLimits.waitBeforePollingMs, () => {
      this.#late = true;
      this.#probe();
    });
  }

  /** Polling got no answer; whether HTTP works is looked at again when the next attempt fails. */
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
