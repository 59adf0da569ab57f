/** Client addresses, for rate limits. */
import type { Context } from "hono";
import { ClientAddresses } from "../../kit/client_address.ts";

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
