/** Whose request it is, for limits that count by client. */
import type { Context } from "hono";
import { ClientAddresses } from "../../kit/client_address.ts";

/** Finds the address of the client that sent a request, behind the proxies the operator trusts. */
export function clientOfRequests(trustedProxies: readonly string[]): (c: Context) => string {
  const proxies = new ClientAddresses(trustedProxies);
  return (c) => proxies.clientOf(peerAddress(c), c.req.header("x-forwarded-for") ?? null);
}

/** Address of the other end of a request's connection. Requests made by tests have none. */
function peerAddress(c: Context): string {
  const peer = (c.env as Partial<Deno.ServeHandlerInfo> | undefined)?.remoteAddr;
  return peer !== undefined && "hostname" in peer ? peer.hostname : "local";
}
