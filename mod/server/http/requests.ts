/** Client addresses, WebSocket upgrades, and requests in flight. */
import type { Context } from "hono";
import { setTimeout as delay } from "node:timers/promises";
import { ServiceError } from "../../errors.ts";
import { ClientAddresses } from "../../kit/client_address.ts";
import { socketLimits } from "../../limits.ts";

/** Returns a function that finds the address of the client behind trusted proxies. */
export function clientOfRequests(trustedProxies: readonly string[]): (c: Context) => string {
  const addressOf = addressOfRequests(trustedProxies);
  return (c) => addressOf(c.req.raw, c.env);
}

/** The same for requests outside a router. */
export function addressOfRequests(
  trustedProxies: readonly string[],
): (request: Request, info?: Partial<Deno.ServeHandlerInfo>) => string {
  const proxies = new ClientAddresses(trustedProxies);
  return (request, info) => proxies.clientOf(peerAddress(info), request.headers.get("x-forwarded-for"));
}

/** Address of the peer. Requests made by tests have none. */
function peerAddress(info: Partial<Deno.ServeHandlerInfo> | undefined): string {
  const peer = info?.remoteAddr;
  return peer !== undefined && "hostname" in peer ? peer.hostname : "local";
}

export interface UpgradeOptions {
  /** See `socketLimits.deadPeerMs`. */
  readonly deadPeerMs?: number;
}

/**
 * Upgrades a request. The platform pings a peer that has been silent for half of `deadPeerMs` and drops the connection if it
 * does not answer. This matters after our close frame, which a vanished peer never answers. Live clients never see this
 * ping, because they answer ours every 15 s. Throws `bad_request` if the handshake is not valid.
 */
export function upgradeSocket(
  request: Request,
  { deadPeerMs = socketLimits.deadPeerMs }: UpgradeOptions = {},
): Deno.WebSocketUpgrade {
  try {
    return Deno.upgradeWebSocket(request, { idleTimeout: deadPeerMs / 1000 });
  } catch (error) {
    throw new ServiceError("bad_request", "The WebSocket handshake is not valid", { cause: error });
  }
}

export class InFlightRequests {
  #count = 0;
  /** Set while a caller waits for the last request. */
  #none: PromiseWithResolvers<void> | null = null;

  /** Counts a request until `answer` settles. */
  add(answer: Promise<unknown>): void {
    this.#count++;
    const end = () => {
      if (--this.#count > 0) return;
      this.#none?.resolve();
      this.#none = null;
    };
    answer.then(end, end);
  }

  /** Resolves to `true` when no request is in flight, or to `false` after `msMax` or when `stopping` is aborted. */
  async waitUntilIdle(msMax: number, stopping: AbortSignal): Promise<boolean> {
    if (this.#count === 0) return true;
    this.#none ??= Promise.withResolvers();
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, stopping]);
    const late = delay(msMax, false, { signal }).catch(() => false);
    const none = await Promise.race([this.#none.promise.then(() => true), late]);
    over.abort();
    return none;
  }
}
