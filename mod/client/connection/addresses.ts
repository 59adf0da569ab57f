/** URLs of a server's endpoints. */

/** Returns the URL of the sync socket: `ws` for `http`, `wss` for `https`. Throws `TypeError` for an invalid URL. */
export function syncAddress(server: string | URL): string {
  const address = endpoint(server, "api/sync");
  address.protocol = address.protocol === "https:" || address.protocol === "wss:" ? "wss:" : "ws:";
  return address.href;
}

/** Returns the URL of an HTTP endpoint, such as `api/query`. */
export function httpAddress(server: string | URL, path: string): string {
  const address = endpoint(server, path);
  address.protocol = address.protocol === "https:" || address.protocol === "wss:" ? "https:" : "http:";
  return address.href;
}

function endpoint(server: string | URL, path: string): URL {
  const page = (globalThis as { location?: { href: string } }).location?.href;
  const base = new URL(server, page);
  if (!["http:", "https:", "ws:", "wss:"].includes(base.protocol)) {
    throw new TypeError(`Cannot connect to "${server}": expected an http or https address`);
  }
  base.search = "";
  base.hash = "";
  if (!base.pathname.endsWith("/")) base.pathname += "/";
  return new URL(path, base);
}
