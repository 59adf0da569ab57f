/**
 * The connection as a pure state machine: events in, effects out.
 *
 * ```text
 *    idle ──start──▶ connecting ──opened──▶ open
 *                     ▲      │                │
 *         timer, wake │      │ closed, fault, │ closed, fault,
 *                     │      │ timer (15 s)   │ timer (30 s of silence)
 *                     │      ▼                │
 *                     └── waiting ◀───────────┘
 *
 *    any state ──pause──▶ idle
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

/** Events of the connection. `now` is in milliseconds. */
export type ConnectionEvent =
  | { readonly type: "start" }
  | { readonly type: "opened"; readonly now: number }
  /** A message arrived. `useful` messages (results, responses) prove that the server serves this client. */
  | { readonly type: "heard"; readonly now: number; readonly useful: boolean }
  | { readonly type: "closed"; readonly now: number; readonly code: number; readonly reason: string }
  /** The connection is unusable: a FatalError, an AuthError or a message that violates the protocol. */
  | { readonly type: "fault"; readonly now: number; readonly reason: string }
  | { readonly type: "timer"; readonly now: number }
  /** The page or network is back, or the user requests a retry. */
  | { readonly type: "wake"; readonly now: number }
  /** The app closes the connection until the next start. */
  | { readonly type: "pause" }
  | { readonly type: "stop" };

/** Effects for the owner of the machine to perform in order. */
export type ConnectionEffect =
  | { readonly type: "openSocket" }
  | { readonly type: "dropSocket" }
  /** Replaces the previous timer. */
  | { readonly type: "setTimer"; readonly delayMs: number }
  | { readonly type: "clearTimer" }
  /** The socket is open. */
  | { readonly type: "up" }
  /** An open socket is gone. */
  | { readonly type: "down" };

const RESTART_CODE = 1012;

export class ConnectionMachine {
  readonly #random: () => number;
  #phase: ConnectionPhase = "idle";
  /** Attempts started; incremented by each openSocket. */
  #attempts = 0;
  /** Consecutive failures; reset by a useful message and by 1012. */
  #retries = 0;
  /** Consecutive attempts that opened no socket. */
  #unopened = 0;
  /** Recent faults; reset when a socket that lived long enough closes. */
  #faults = 0;
  #openedAt = 0;
  #lastFrameAt = 0;
  #everOpened = false;
  #lastCloseReason: string | null = null;

  constructor(random: () => number) {
    this.#random = random;
  }

  get phase(): ConnectionPhase {
    return this.#phase;
  }

  /** `connectionCount` of the current attempt: 0 for the first, including attempts that never opened. */
  get connectionCount(): number {
    return Math.max(0, this.#attempts - 1);
  }

  get retries(): number {
    return this.#retries;
  }

  /** Consecutive attempts that opened no socket; many of them make the client poll (`fallback.ts`). */
  get unopened(): number {
    return this.#unopened;
  }

  get everOpened(): boolean {
    return this.#everOpened;
  }

  /** Why the last socket closed; `null` if none has closed yet. */
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
        this.#lastFrameAt = event.now;
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
      case "pause":
        return this.#end("idle");
      case "stop":
        return this.#end("stopped");
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
    this.#lastFrameAt = now;
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
        const leftMs = this.#lastFrameAt + clientLimits.silenceMs - now;
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
    if (this.#phase !== "open" || now - this.#lastFrameAt < clientLimits.wakeSilenceMs) return [];
    return [...this.#lose(now, { reason: "silent during sleep" }), ...this.#connect()];
  }

  #end(phase: "idle" | "stopped"): ConnectionEffect[] {
    const effects: ConnectionEffect[] = [{ type: "clearTimer" }];
    if (this.#hasSocket) effects.push({ type: "dropSocket" });
    if (this.#phase === "open") effects.push({ type: "down" });
    this.#phase = phase;
    return effects;
  }

  /** Drops the current socket and waits: for the given time, or for one that grows with failures and faults. */
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

  /** Half of the delay is jitter, so that clients that failed together do not reconnect together. */
  #backoffMs(): number {
    const exponent = Math.min(Math.max(this.#retries, this.#faults), 16);
    const fullMs = Math.min(clientLimits.backoffMaxMs, clientLimits.backoffFirstMs * 2 ** exponent);
    return fullMs * (0.5 + 0.5 * this.#random());
  }
}
