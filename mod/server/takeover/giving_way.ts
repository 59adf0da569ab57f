/**
 * How a server gives way to another that takes over. Requests wait from the moment it lets go of the database; then it either
 * goes on, as if nothing had happened, or has given way, and passes on what still comes.
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
  /** Lends the database to the successor; `null` when that cannot be done now. */
  readonly lend: () => Promise<Lent | null>;
  /** Waits for a bounded time until no other process has the data folder; `false`: one still does. */
  readonly alone: () => Promise<boolean>;
  /** Answers as ever, when this server goes on. */
  readonly respond: (admitted: Admitted, info: Deno.ServeHandlerInfo) => Answer;
  /** Told of each request that waits. */
  readonly onHeld: (request: Request, info: Deno.ServeHandlerInfo) => void;
  readonly native: NativeSockets | null;
  readonly log: Log;
}

export class GivingWay implements GivesWay, Disposable {
  readonly #options: GivingWayOptions;
  /** Set while it is not known who answers. */
  #passing: Passing | null = null;
  /** Set for good. */
  #successor: Successor | null = null;
  /** The server ends: what was lent is not given back any more. */
  #stopping = false;
  readonly #stopped = Promise.withResolvers<null>();
  readonly #done = Promise.withResolvers<void>();
  /** Whether the successor listens on the same port. */
  #portShared = false;
  /** When a request was passed on last. */
  #passedAt = -Infinity;

  constructor(options: GivingWayOptions) {
    this.#options = options;
  }

  get address(): GivesWay["address"] {
    return this.#options.address;
  }

  /** Whether it has given way. */
  get given(): boolean {
    return this.#successor !== null;
  }

  /** Resolves when it has given way. */
  get done(): Promise<void> {
    return this.#done.promise;
  }

  /** How a request is answered; `null`: as ever. */
  respond(admitted: Admitted, info: Deno.ServeHandlerInfo): Answer | null {
    if (this.#successor !== null) return this.#pass(admitted.request, { info, successor: this.#successor });
    if (this.#passing === null) return null;
    // Health is told meanwhile.
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

  /** The other one's writer goes with its process, and with that its hold of the folder: before, there would be two. */
  async takeBack(): Promise<void> {
    const { alone, log } = this.#options;
    for (let told = false; !this.#stopping && !await alone(); told = true) {
      if (!told) log("error", "The server that was to take over has not ended: this one waits for that");
    }
    if (!this.#stopping) this.#goOn();
  }

  /** The server ends: requests that wait are refused, and nothing that was lent is given back. */
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
    if (passing === null) throw new TypeError("The server has not let go of its database, or ends");
    const { native, log } = this.#options;
    const fd = this.#portShared ? native?.listening(this.address.port) ?? null : null;
    // Otherwise the kernel would go on giving every other connection to this one.
    if (fd !== null && native?.steer(fd, "second") === false) {
      log("warn", "New connections come to both servers: some may be cut when this one ends");
    }
    this.#successor = new Successor(to, log);
    this.#passing = null;
    this.#passedAt = performance.now();
    passing.giveWay(this.#successor);
    this.#done.resolve();
  }

  /**
   * Until nobody sends requests here any more and no connection waits to be taken, for a bounded time. A port that is not
   * shared is given up at once: the successor waits for it.
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

  /** The successor answers; a client that wants a socket is told to come back, which leads it there. */
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
