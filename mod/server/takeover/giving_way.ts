/**
 * Hands a server over to a new process. Requests are held from the moment the database is released. The server then either
 * continues as before or forwards them, and all later ones, to the new process.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Lent } from "../../functions/host/mod.ts";
import { failureResponse } from "../../kit/error_response.ts";
import type { Log } from "../../kit/log.ts";
import { closeCodes } from "../../sync/mod.ts";
import type { Admitted } from "../http/request_gate.ts";
import { upgradeSocket } from "../http/upgrade.ts";
import { takeoverLimits } from "../limits.ts";
import type { NativeSockets } from "../net/native_sockets.ts";
import type { GivesWay } from "./door.ts";
import { Passing } from "./passing.ts";
import { Successor } from "./successor.ts";

type Answer = Response | Promise<Response>;

export interface GivingWayOptions {
  readonly address: GivesWay["address"];
  /** Releases the database for the new process; `null` if that is not possible now. */
  readonly lend: () => Promise<Lent | null>;
  /** Waits for a limited time until no other process holds the data folder. Returns `false` on timeout. */
  readonly alone: () => Promise<boolean>;
  /** Answers a request in this server. */
  readonly respond: (admitted: Admitted, info: Deno.ServeHandlerInfo) => Answer;
  /** Called with each request that is held. */
  readonly onHeld: (request: Request, info: Deno.ServeHandlerInfo) => void;
  readonly native: NativeSockets | null;
  readonly log: Log;
}

export class GivingWay implements GivesWay, Disposable {
  readonly #options: GivingWayOptions;
  /** Set while it is undecided which process answers. */
  #passing: Passing | null = null;
  /** Set after the handover. */
  #successor: Successor | null = null;
  /** Set when the server stops: a released database is not reopened. */
  #stopping = false;
  readonly #stopped = Promise.withResolvers<null>();
  readonly #done = Promise.withResolvers<void>();
  /** Whether the new process listens on the same port. */
  #portShared = false;
  /** When a request was last forwarded. */
  #passedAt = -Infinity;

  constructor(options: GivingWayOptions) {
    this.#options = options;
  }

  get address(): GivesWay["address"] {
    return this.#options.address;
  }

  /** Whether the handover is complete. */
  get given(): boolean {
    return this.#successor !== null;
  }

  /** Resolves when the handover is complete. */
  get done(): Promise<void> {
    return this.#done.promise;
  }

  /** Holds or forwards a request; `null` if this server answers it as usual. */
  respond(admitted: Admitted, info: Deno.ServeHandlerInfo): Answer | null {
    if (this.#successor !== null) return this.#pass(admitted.request, { info, successor: this.#successor });
    if (this.#passing === null) return null;
    // Health checks are answered during the switch.
    return admitted.path === "/api/health" ? null : this.#hold(admitted, info, this.#passing);
  }

  async letGo(): Promise<boolean> {
    if (this.#passing !== null || this.#successor !== null || this.#stopping) return false;
    const passing = this.#passing = new Passing();
    const lent = await Promise.race([this.#options.lend(), this.#stopped.promise]);
    if (this.#stopping) return false;
    if (lent === null) this.#goOn();
    else passing.lent(lent);
    return lent !== null;
  }

  sharePort(): boolean {
    const { native } = this.#options;
    const fd = native?.listening(this.address.port) ?? null;
    return this.#portShared = fd !== null && native !== null && native.share(fd);
  }

  /** Waits for the end of the new process, which releases its lock: until then there would be two writers. */
  async takeBack(): Promise<void> {
    const { alone, log } = this.#options;
    for (let told = false; !this.#stopping && !await alone(); told = true) {
      if (!told) log("error", "The new process has not ended after the failed takeover; waiting for it");
    }
    if (!this.#stopping) this.#goOn();
  }

  /** Called when the server stops: held requests are refused and a released database is not reopened. */
  stop(): void {
    if (this.given || this.#stopping) return;
    this.#stopping = true;
    this.#stopped.resolve(null);
    this.#passing?.refuse();
    this.#passing = null;
  }

  #goOn(): void {
    const passing = this.#passing;
    this.#passing = null;
    passing?.takeBack();
  }

  giveWay(to: { readonly socket: string; readonly key: string }): void {
    const passing = this.#passing;
    if (passing === null) throw new TypeError("The server has not released its database or is stopping");
    const { native, log } = this.#options;
    const fd = this.#portShared ? native?.listening(this.address.port) ?? null : null;
    // Otherwise the kernel would distribute new connections between both.
    if (fd !== null && native?.steer(fd, "second") === false) {
      log("warn", "Both processes receive new connections: some may be reset when this one ends");
    }
    this.#successor = new Successor(to, log);
    this.#passing = null;
    this.#passedAt = performance.now();
    passing.giveWay(this.#successor);
    this.#done.resolve();
  }

  /**
   * Waits up to `msMax` until no requests arrive and no connection waits to be accepted. A port that is not shared is closed at
   * once, because the new process waits for it.
   */
  async quiet(msMax: number): Promise<void> {
    if (!this.#portShared) return;
    const { native } = this.#options;
    const fd = native?.listening(this.address.port) ?? null;
    const endAt = performance.now() + msMax;
    for (;;) {
      const now = performance.now();
      const waits = fd !== null && native !== null && native.untaken(fd) > 0;
      if (now >= endAt || (!waits && now - this.#passedAt >= takeoverLimits.quietMs)) return;
      await delay(takeoverLimits.quietPollMs);
    }
  }

  [Symbol.dispose](): void {
    this.stop();
    this.#successor?.[Symbol.dispose]();
  }

  async #hold(admitted: Admitted, info: Deno.ServeHandlerInfo, passing: Passing): Promise<Response> {
    const { onHeld, respond, log } = this.#options;
    const { request } = admitted;
    onHeld(request, info);
    try {
      const successor = await passing.hold();
      return await (successor === null ? respond(admitted, info) : this.#pass(request, { info, successor }));
    } catch (error) {
      return failureResponse(error, log);
    }
  }

  /** Forwards a request. WebSocket connections are closed for a restart, so that clients reconnect to the new process. */
  #pass(
    request: Request,
    { info, successor }: { readonly info: Deno.ServeHandlerInfo; readonly successor: Successor },
  ): Answer {
    this.#passedAt = performance.now();
    if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
      return successor.forward(request, info);
    }
    try {
      const { socket, response } = upgradeSocket(request);
      socket.addEventListener("open", () => socket.close(closeCodes.restart));
      return response;
    } catch (error) {
      return failureResponse(error, this.#options.log);
    }
  }
}
