/** Whose request it is, for limits that count by client. */
import type { Context } from "hono";
import { ClientAddresses } from "../../kit/client_address.ts";

/** Finds the address of the client that sent a request, behind the proxies the operator trusts. */
export function clientOfRequests(trustedProxies: readonly string[]): (c: Context) => string {
  const addressOf = addressOfRequests(trustedProxies);
  return (c) => addressOf(c.req.raw, c.env);
}

/** The same for requests that no router has seen. */
export function addressOfRequests(
  trustedProxies: readonly string[],
): (request: Request, info?: Partial<Deno.ServeHandlerInfo>) => string {
  const proxies = new ClientAddresses(trustedProxies);
  return (request, info) => proxies.clientOf(peerAddress(info), request.headers.get("x-forwarded-for"));
}

/** Address of the other end of a request's connection. Requests made by tests have none. */
function peerAddress(info: Partial<Deno.ServeHandlerInfo> | undefined): string {
  const peer = info?.remoteAddr;
  return peer !== undefined && "hostname" in peer ? peer.hostname : "local";
}
