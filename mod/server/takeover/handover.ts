/**
 * Hands a server over to a new process. Requests are held from the moment the database is released. The server then either
 * continues as before or forwards them, and all later ones, to the new process.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Lent } from "../../functions/host/mod.ts";
import { failureResponse } from "../../kit/error_response.ts";
import type { Log } from "../../kit/log.ts";
import { closeCodes } from "../../sync/mod.ts";
import type { AcceptedRequest } from "../http/request_gate.ts";
import { upgradeSocket } from "../http/requests.ts";
import { takeoverLimits } from "../limits.ts";
import type { NativeSockets } from "../net/native_sockets.ts";
import type { HandoverSteps } from "./takeover_listener.ts";
import { HeldRequests } from "./held_requests.ts";
import { NewProcess } from "./new_process.ts";

type Answer = Response | Promise<Response>;

export interface HandoverOptions {
  readonly address: HandoverSteps["address"];
  /** Releases the database for the new process; `null` if that is not possible now. */
  readonly lendDatabase: () => Promise<Lent | null>;
  /** Waits for a limited time until no other process holds the data folder. Returns `false` on timeout. */
  readonly waitUntilExclusive: () => Promise<boolean>;
  /** Answers a request in this server. */
  readonly respond: (admitted: AcceptedRequest, info: Deno.ServeHandlerInfo) => Answer;
  /** Called with each request that is held. */
  readonly onHeld: (request: Request, info: Deno.ServeHandlerInfo) => void;
  readonly native: NativeSockets | null;
  readonly log: Log;
}

export class Handover implements HandoverSteps, Disposable {
  readonly #options: HandoverOptions;
  /** Set while it is undecided which process answers. */
  #held: HeldRequests | null = null;
  /** Set after the handover. */
  #newProcess: NewProcess | null = null;
  /** Set when the server stops: a released database is not reopened. */
  #stopping = false;
  readonly #stopped = Promise.withResolvers<null>();
  readonly #done = Promise.withResolvers<void>();
  /** Whether the new process listens on the same port. */
  #portShared = false;
  /** When a request was last forwarded. */
  #forwardedAt = -Infinity;

  constructor(options: HandoverOptions) {
    this.#options = options;
  }

  get address(): HandoverSteps["address"] {
    return this.#options.address;
  }

  /** Whether the handover is complete. */
  get isComplete(): boolean {
    return this.#newProcess !== null;
  }

  /** Resolves when the handover is complete. */
  get done(): Promise<void> {
    return this.#done.promise;
  }

  /** Holds or forwards a request; `null` if this server answers it as usual. */
  respond(admitted: AcceptedRequest, info: Deno.ServeHandlerInfo): Answer | null {
    if (this.#newProcess !== null) {
      return this.#forward(admitted.request, { info, newProcess: this.#newProcess });
    }
    if (this.#held === null) return null;
    // Health checks are answered during the switch.
    return admitted.path === "/api/health" ? null : this.#hold(admitted, info, this.#held);
  }

  async releaseDatabase(): Promise<boolean> {
    if (this.#held !== null || this.#newProcess !== null || this.#stopping) return false;
    const held = this.#held = new HeldRequests();
    const lent = await Promise.race([this.#options.lendDatabase(), this.#stopped.promise]);
    if (this.#stopping) return false;
    if (lent === null) this.#continue();
    else held.lent(lent);
    return lent !== null;
  }

  sharePort(): boolean {
    const { native } = this.#options;
    const fd = native?.findListener(this.address.port) ?? null;
    return this.#portShared = fd !== null && native !== null && native.sharePort(fd);
  }

  /** Waits for the end of the new process, which releases its lock: until then there would be two writers. */
  async revert(): Promise<void> {
    const { waitUntilExclusive: alone, log } = this.#options;
    for (let told = false; !this.#stopping && !await alone(); told = true) {
      if (!told) log("error", "The new process has not ended after the failed takeover; waiting for it");
    }
    if (!this.#stopping) this.#continue();
  }

  /** Called when the server stops: held requests are refused and a released database is not reopened. */
  stop(): void {
    if (this.isComplete || this.#stopping) return;
    this.#stopping = true;
    this.#stopped.resolve(null);
    this.#held?.refuse();
    this.#held = null;
  }

  #continue(): void {
    const held = this.#held;
    this.#held = null;
    held?.release();
  }

  complete(to: { readonly socket: string; readonly key: string }): void {
    const held = this.#held;
    if (held === null) throw new TypeError("The server has not released its database or is stopping");
    const { native, log } = this.#options;
    const fd = this.#portShared ? native?.findListener(this.address.port) ?? null : null;
    // Otherwise the kernel would distribute new connections between both.
    if (fd !== null && native?.steerConnections(fd, "second") === false) {
      log("warn", "Both processes receive new connections: some may be reset when this one ends");
    }
    this.#newProcess = new NewProcess(to, log);
    this.#held = null;
    this.#forwardedAt = performance.now();
    held.handOver(this.#newProcess);
    this.#done.resolve();
  }

  /**
   * Waits up to `msMax` until no requests arrive and no connection waits to be accepted. A port that is not shared is closed at
   * once, because the new process waits for it.
   */
  async waitUntilQuiet(msMax: number): Promise<void> {
    if (!this.#portShared) return;
    const { native } = this.#options;
    const fd = native?.findListener(this.address.port) ?? null;
    const endAt = performance.now() + msMax;
    for (;;) {
      const now = performance.now();
      const waits = fd !== null && native !== null && native.acceptQueueLength(fd) > 0;
      if (now >= endAt || (!waits && now - this.#forwardedAt >= takeoverLimits.quietMs)) return;
      await delay(takeoverLimits.quietPollMs);
    }
  }

  [Symbol.dispose](): void {
    this.stop();
    this.#newProcess?.[Symbol.dispose]();
  }

  async #hold(
    admitted: AcceptedRequest,
    info: Deno.ServeHandlerInfo,
    held: HeldRequests,
  ): Promise<Response> {
    const { onHeld, respond, log } = this.#options;
    const { request } = admitted;
    onHeld(request, info);
    try {
      const newProcess = await held.wait();
      return await (newProcess === null
        ? respond(admitted, info)
        : this.#forward(request, { info, newProcess }));
    } catch (error) {
      return failureResponse(error, log);
    }
  }

  /** Forwards a request. WebSocket connections are closed for a restart, so that clients reconnect to the new process. */
  #forward(
    request: Request,
    { info, newProcess }: { readonly info: Deno.ServeHandlerInfo; readonly newProcess: NewProcess },
  ): Answer {
    this.#forwardedAt = performance.now();
    if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
      return newProcess.forward(request, info);
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
