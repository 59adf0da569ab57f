/** Performs the effects of the connection machine: sockets, the timer, and notifications. */
import { Alarm, type Clock } from "../clock.ts";
import { type ConnectionEffect, type ConnectionEvent, ConnectionMachine } from "./connection.ts";

/** The part of a WebSocket that is used; compatible with the platform's own. */
export interface WebSocketLike {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  send(data: string): void;
  close(code?: number, reason?: string): void;
}

/** Creates a socket, like `new WebSocket(url)`. */
export type WebSocketFactory = new (url: string) => WebSocketLike;

/** Receives the events of the connection. */
export interface SocketOwner {
  /** A socket opened. */
  up(): void;
  /** The open socket is gone. */
  down(): void;
  /** A text frame arrived; `null` for a binary frame. */
  received(text: string | null): void;
  /** The phase may have changed. */
  phaseChanged(): void;
}

/** Dependencies of the driver. */
export interface SocketEnvironment {
  readonly url: string;
  readonly WebSocket: WebSocketFactory;
  readonly clock: Clock;
  readonly random: () => number;
}

export class SocketDriver {
  readonly #environment: SocketEnvironment;
  readonly #owner: SocketOwner;
  readonly #machine: ConnectionMachine;
  readonly #alarm: Alarm;
  /** Socket of the current attempt; replaced by openSocket, cleared by dropSocket. */
  #socket: WebSocketLike | null = null;
  /** When the timer expires. */
  #timerAt = 0;

  constructor(environment: SocketEnvironment, owner: SocketOwner) {
    this.#environment = environment;
    this.#owner = owner;
    this.#machine = new ConnectionMachine(environment.random);
    this.#alarm = new Alarm(environment.clock);
  }

  get machine(): Readonly<Omit<ConnectionMachine, "step">> {
    return this.#machine;
  }

  /** When the next attempt starts; `null` if none is scheduled. */
  get reconnectsAt(): number | null {
    return this.#machine.phase === "waiting" ? this.#timerAt : null;
  }

  start(): void {
    this.#step({ type: "start" });
  }

  wake(): void {
    const now = this.#environment.clock.now();
    // Timers are suspended while a machine sleeps: treat an overdue timer as expired.
    if (this.#alarm.isSet && now >= this.#timerAt) {
      this.#alarm.clear();
      this.#step({ type: "timer", now });
    }
    this.#step({ type: "wake", now });
  }

  pause(): void {
    this.#step({ type: "pause" });
  }

  stop(): void {
    this.#step({ type: "stop" });
  }

  /** Drops the current socket and reconnects with growing delays. */
  fault(reason: string): void {
    this.#step({ type: "fault", now: this.#environment.clock.now(), reason });
  }

  /** Records that the server serves this client, which resets the reconnect delays. */
  useful(): void {
    this.#step({ type: "heard", now: this.#environment.clock.now(), useful: true });
  }

  /** Sends a message if a socket is open. A socket that fails to send counts as closed. */
  send(message: unknown): void {
    const socket = this.#socket;
    try {
      socket?.send(JSON.stringify(message));
    } catch (error) {
      // Asynchronously: the connection must not vanish between two messages of the caller.
      queueMicrotask(() => {
        if (socket === this.#socket) this.#closed({ code: 1006, reason: `send failed: ${error}` });
      });
    }
  }

  #closed({ code, reason }: { readonly code: number; readonly reason: string }): void {
    this.#step({ type: "closed", now: this.#environment.clock.now(), code, reason });
  }

  #step(event: ConnectionEvent): void {
    const before = this.#machine.phase;
    for (const effect of this.#machine.step(event)) this.#carryOut(effect);
    if (this.#machine.phase !== before) this.#owner.phaseChanged();
  }

  #carryOut(effect: ConnectionEffect): void {
    switch (effect.type) {
      case "openSocket":
        return this.#openSocket();
      case "dropSocket":
        return this.#dropSocket();
      case "setTimer":
        this.#timerAt = this.#environment.clock.now() + effect.delayMs;
        return this.#alarm.set(
          effect.delayMs,
          () => this.#step({ type: "timer", now: this.#environment.clock.now() }),
        );
      case "clearTimer":
        return this.#alarm.clear();
      case "up":
        return this.#owner.up();
      case "down":
        return this.#owner.down();
      default:
        return effect satisfies never;
    }
  }

  #openSocket(): void {
    const { clock, url, WebSocket } = this.#environment;
    let socket: WebSocketLike;
    try {
      socket = new WebSocket(url);
    } catch (error) {
      // Asynchronously: the step that opens the socket is still running.
      queueMicrotask(() => {
        if (this.#socket === null) this.#closed({ code: 1006, reason: String(error) });
      });
      return;
    }
    this.#socket = socket;
    const whileCurrent = <Event>(handle: (event: Event) => void) => (event: Event) => {
      if (this.#socket === socket) handle(event);
    };
    socket.onopen = whileCurrent(() => this.#step({ type: "opened", now: clock.now() }));
    socket.onmessage = whileCurrent((event: { readonly data: unknown }) => {
      this.#step({ type: "heard", now: clock.now(), useful: false });
      this.#owner.received(typeof event.data === "string" ? event.data : null);
    });
    socket.onclose = whileCurrent((event: { readonly code?: number; readonly reason?: string }) => {
      this.#closed({ code: event.code || 1006, reason: event.reason ?? "" });
    });
    // An error event is always followed by a close event; without a handler Node would throw.
    socket.onerror = () => {};
  }

  /** Drops the socket without waiting for its close event, which may be delayed for minutes. */
  #dropSocket(): void {
    const socket = this.#socket;
    this.#socket = null;
    try {
      socket?.close();
    } catch {
      // Ignore errors from closing.
    }
  }
}
