/** Converts HTTP requests and responses to and from JSON. */
import type { WireRequest, WireResponse } from "./messages.ts";

export function toRequest({ url, method, headers, body }: WireRequest): Request {
  return new Request(url, {
    method,
    headers: headers.map(([name, value]): [string, string] => [name, value]),
    ...(body !== null && { body: Uint8Array.fromBase64(body) }),
  });
}

export async function toWire(response: Response): Promise<WireResponse> {
  const { status } = response;
  const body = new Uint8Array(await response.arrayBuffer()).toBase64();
  return { status, headers: [...response.headers], body };
}
