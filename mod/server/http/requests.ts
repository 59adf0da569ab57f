/** Client addresses and WebSocket upgrades. */
import type { Context } from "hono";
import { ServiceError } from "../../errors.ts";
import { ClientAddresses } from "../../kit/client_address.ts";
import { socketLimits } from "../../limits.ts";
import type { Hub } from "../../sync/mod.ts";
import type { UpgradedConnection } from "../net/connections.ts";

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
  const forwardedFor = trustedProxies.length === 0
    ? () => null
    : (request: Request) => request.headers.get("x-forwarded-for");
  return (request, info) => proxies.clientOf(peerAddress(info), forwardedFor(request));
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

/** Answers a WebSocket handshake and adds the socket to the hub. `upgraded` returns the connection below it. */
export function acceptSocket(
  { hub, addressOf }: {
    readonly hub: Pick<Hub, "accept">;
    readonly addressOf: ReturnType<typeof addressOfRequests>;
  },
  request: Request,
  { upgraded, info }: { readonly upgraded: () => UpgradedConnection; readonly info?: Deno.ServeHandlerInfo },
): Response {
  // The address cannot be read after the upgrade.
  const address = addressOf(request, info);
  const { socket, response } = upgradeSocket(request);
  const connection = upgraded();
  socket.addEventListener("close", () => connection.closed());
  hub.accept(socket, { connection, address });
  return response;
}
