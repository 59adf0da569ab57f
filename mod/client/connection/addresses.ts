/** URLs of a server's endpoints. Of `URL`, only `href` is used: that of React Native lacks setters and relative URLs. */

/** Returns the URL of the sync socket: `ws` for `http`, `wss` for `https`. Throws `TypeError` for an invalid URL. */
export function syncAddress(server: string | URL): string {
  return `ws${endpoint(server)}api/sync`;
}

/** Returns the URL of an HTTP endpoint, such as `api/query`. */
export function httpAddress(server: string | URL, path: string): string {
  return `http${endpoint(server)}${path}`;
}

/** Adds parameters to a URL. Those without a value are left out. */
export function withParameters(url: string, parameters: object): string {
  for (const [name, value] of Object.entries(parameters)) {
    if (value) url += `${url.includes("?") ? "&" : "?"}${name}=${encodeURIComponent(value)}`;
  }
  return url;
}

/** Returns the base URL without `http` or `ws`, with a slash at the end. */
function endpoint(server: string | URL): string {
  const page = (globalThis as { location?: { href: string } }).location?.href;
  const [, base] = /^(?:http|ws)(s?:\/\/[^?#]+)/.exec(new URL(server, page).href) ?? [];
  if (base === undefined) {
    throw new TypeError(`Cannot connect to "${server}": expected an http or https address`);
  }
  return base.replace(/\/?$/, "/");
}
