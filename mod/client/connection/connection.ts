/**
 * The life of the connection as a state machine without sockets or clocks: events in, effects out.
 *
 * ```text
 *    idle ──start──▶ connecting ──opened──▶ open
 *                     ▲      │                │
 *         timer, wake │      │ closed, fault, │ closed, fault,
 *                     │      │ timer (15 s)   │ timer (30 s of silence)
 *                     │      ▼                │
 *                     └── waiting ◀───────────┘
 *
 *    any state ──stop──▶ stopped
 * ```
 *
 * While connecting and waiting follow one another without a socket, results and calls may go over HTTP: that is a machine
 * of its own beside this one, drawn in `fallback.ts`.
 *
 * Each state but idle and stopped has one timer. The wait before a reconnection grows with failures in a row and with
 * faults (FatalError, AuthError, broken messages); close code 1012 is answered within 250 ms, without growth.
 */
import * as clientLimits from "../limits.ts";

export type ConnectionPhase = "idle" | "connecting" | "open" | "waiting" | "stopped";

/** What happened to the connection. `now` is in milliseconds. */
export type ConnectionEvent =
  | { readonly type: "start" }
  | { readonly type: "opened"; readonly now: number }
  /** A message came; `useful` ones (results, answers) prove that the server serves this client. */
  | { readonly type: "heard"; readonly now: number; readonly useful: boolean }
  | { readonly type: "closed"; readonly now: number; readonly code: number; readonly reason: string }
  /** The connection is of no more use: a FatalError, an AuthError or a message that breaks the protocol. */
  | { readonly type: "fault"; readonly now: number; readonly reason: string }
  | { readonly type: "timer"; readonly now: number }
  /** The page or the network came back, or a person asks to try now. */
  | { readonly type: "wake"; readonly now: number }
  | { readonly type: "stop" };

/** What the owner of the machine has to do, in order. */
export type ConnectionEffect =
  | { readonly type: "openSocket" }
  | { readonly type: "dropSocket" }
  /** Replaces the timer that was set before. */
  | { readonly type: "setTimer"; readonly delayMs: number }
  | { readonly type: "clearTimer" }
  /** The socket can carry messages. */
  | { readonly type: "up" }
  /** A socket that was up is gone. */
  | { readonly type: "down" };

const RESTART_CODE = 1012;

export class ConnectionMachine {
  readonly #random: () => number;
  #phase: ConnectionPhase = "idle";
  /** Attempts begun; raised with each openSocket, whether it opens or not. */
  #attempts = 0;
  /** Failures in a row; cleared by a useful message and by 1012. */
  #retries = 0;
  /** Attempts in a row that opened no socket. */
  #unopened = 0;
  /** Faults of late; cleared when a socket that lived long enough ends. */
  #faults = 0;
  #openedAt = 0;
  #heardAt = 0;
  #everOpened = false;
  #lastCloseReason: string | null = null;

  constructor(random: () => number) {
    this.#random = random;
  }

  get phase(): ConnectionPhase {
    return this.#phase;
  }

  /** `connectionCount` of the attempt under way: 0 for the first, counting attempts that never opened. */
  get connectionCount(): number {
    return Math.max(0, this.#attempts - 1);
  }

  get retries(): number {
    return this.#retries;
  }

  /** Attempts in a row that opened no socket; many of them make the client poll (`fallback.ts`). */
  get unopened(): number {
    return this.#unopened;
  }

  get everOpened(): boolean {
    return this.#everOpened;
  }

  /** Why the last socket ended; `null` before the first end. */
  get lastCloseReason(): string | null {
    return this.#lastCloseReason;
  }

  step(event: ConnectionEvent): ConnectionEffect[] {
    if (this.#phase === "stopped") return [];
    switch (event.type) {
      case "start":
        return this.#phase === "idle" ? this.#connect() : [];
      case "opened":
        return this.#phase === "connecting" ? this.#open(event.now) : [];
      case "heard":
        this.#heardAt = event.now;
        if (event.useful) this.#retries = 0;
        return [];
      case "closed":
        return this.#closed(event);
      case "fault":
        return this.#hasSocket ? this.#fault(event) : [];
      case "timer":
        return this.#timer(event.now);
      case "wake":
        return this.#wake(event.now);
      case "stop":
        return this.#stop();
      default:
        return event satisfies never;
    }
  }

  get #hasSocket(): boolean {
    return this.#phase === "connecting" || this.#phase === "open";
  }

  #connect(): ConnectionEffect[] {
    this.#phase = "connecting";
    this.#attempts++;
    return [{ type: "openSocket" }, { type: "setTimer", delayMs: clientLimits.openMs }];
  }

  #open(now: number): ConnectionEffect[] {
    this.#phase = "open";
    this.#everOpened = true;
    this.#unopened = 0;
    this.#openedAt = now;
    this.#heardAt = now;
    return [{ type: "setTimer", delayMs: clientLimits.silenceMs }, { type: "up" }];
  }

  #closed({ now, code, reason }: { now: number; code: number; reason: string }): ConnectionEffect[] {
    if (!this.#hasSocket) return [];
    const text = reason === "" ? `closed with code ${code}` : `closed with code ${code}: ${reason}`;
    if (code !== RESTART_CODE) return this.#lose(now, { reason: text });
    const effects = this.#lose(now, { reason: text, delayMs: this.#random() * clientLimits.restartJitterMs });
    this.#retries = 0;
    return effects;
  }

  #fault({ now, reason }: { now: number; reason: string }): ConnectionEffect[] {
    const effects = this.#lose(now, { reason });
    this.#faults++;
    return effects;
  }

  #timer(now: number): ConnectionEffect[] {
    switch (this.#phase) {
      case "waiting":
        return this.#connect();
      case "connecting":
        return this.#lose(now, { reason: `not open after ${clientLimits.openMs} ms` });
      case "open": {
        const leftMs = this.#heardAt + clientLimits.silenceMs - now;
        if (leftMs > 0) return [{ type: "setTimer", delayMs: leftMs }];
        return this.#lose(now, { reason: `silent for ${clientLimits.silenceMs} ms` });
      }
      case "idle":
      case "stopped":
        return [];
      default:
        return this.#phase satisfies never;
    }
  }

  #wake(now: number): ConnectionEffect[] {
    if (this.#phase === "waiting") return this.#connect();
    if (this.#phase !== "open" || now - this.#heardAt < clientLimits.wakeSilenceMs) return [];
    return [...this.#lose(now, { reason: "silent during sleep" }), ...this.#connect()];
  }

  #stop(): ConnectionEffect[] {
    const effects: ConnectionEffect[] = [{ type: "clearTimer" }];
    if (this.#hasSocket) effects.push({ type: "dropSocket" });
    if (this.#phase === "open") effects.push({ type: "down" });
    this.#phase = "stopped";
    return effects;
  }

  /** Ends the current socket and waits: for the given time, or for one that grows with failures and faults. */
  #lose(now: number, { reason, delayMs }: { reason: string; delayMs?: number }): ConnectionEffect[] {
    const wasOpen = this.#phase === "open";
    if (!wasOpen) this.#unopened++;
    if (wasOpen && now - this.#openedAt >= clientLimits.faultMemoryMs) this.#faults = 0;
    const wait = delayMs ?? this.#backoffMs();
    this.#retries++;
    this.#phase = "waiting";
    this.#lastCloseReason = reason;
    const effects: ConnectionEffect[] = [{ type: "dropSocket" }, { type: "setTimer", delayMs: wait }];
    if (wasOpen) effects.push({ type: "down" });
    return effects;
  }

  /** Half of the wait is jitter, so that clients that failed together do not come back together. */
  #backoffMs(): number {
    const exponent = Math.min(Math.max(this.#retries, this.#faults), 16);
    const fullMs = Math.min(clientLimits.backoffMaxMs, clientLimits.backoffFirstMs * 2 ** exponent);
    return fullMs * (0.5 + 0.5 * this.#random());
  }
}
