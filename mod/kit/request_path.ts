/** The one form of a request's path that every part of the server decides by. */

/** Whether a path may have several spellings: dot segments, or anything that RFC 3986 does not allow unescaped. */
const UNUSUAL = /\/\.|[^A-Za-z0-9\-._~!$&'()*+,;=:@/]/;

/** Escapes that no path may have: control characters. */
const REFUSED = /%(?:[01][0-9a-f]|7f)/i;

const UNRESERVED = /[A-Za-z0-9\-._~]/;

/** Unescaped characters that URLs tolerate in a path and RFC 3986 does not allow there. */
const TOLERATED = /[^A-Za-z0-9\-._~!$&'()*+,;=:@/%]/g;

/**
 * Returns the normal form of a path: dot segments resolved, backslashes as slashes, escapes of unreserved characters decoded
 * (RFC 3986, 6.2.2), all others in upper case, and what has to be escaped escaped. An escaped slash or backslash stays one, and
 * separates no segments. The normal form of a normal form is itself. Returns `null` for a path that has none: escapes that are
 * not UTF-8, and those of control characters.
 */
export function normalPath(path: string): string | null {
  if (!UNUSUAL.test(path)) return path;
  // Resolves segments, also those whose dots are escaped.
  const resolved = URL.parse(`http://host${path}`)?.pathname;
  if (resolved === undefined || REFUSED.test(resolved)) return null;
  try {
    decodeURIComponent(resolved);
  } catch {
    return null;
  }
  return resolved.replace(/%([0-9A-Fa-f]{2})/g, (escape, hex: string) => {
    const char = String.fromCharCode(parseInt(hex, 16));
    return UNRESERVED.test(char) ? char : escape.toUpperCase();
  }).replace(TOLERATED, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** The path of a request whose URL is in normal form, as {@linkcode normalRequest} gives it, or of its URL. */
export function requestPath({ url }: Pick<Request, "url">): string {
  const { start, end } = pathRange(url);
  return url.slice(start, end);
}

/** The query of a request, with its question mark; empty without one. */
export function requestSearch({ url }: Pick<Request, "url">): string {
  return /\?[^#]*/.exec(url)?.[0] ?? "";
}

/** The request with the normal form of its path in its URL, itself where that is so already. `null`: it has none. */
export function normalRequest(request: Request): Request | null {
  const { url } = request;
  const { start, end } = pathRange(url);
  const given = url.slice(start, end);
  const path = normalPath(given);
  if (path === null) return null;
  if (path === given) return request;
  return new Request(`${url.slice(0, start)}${path}${url.slice(end)}`, request);
}

/** Where the path of an absolute URL stands. */
function pathRange(url: string): { readonly start: number; readonly end: number } {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const length = url.slice(start).search(/[?#]/);
  return { start, end: length === -1 ? url.length : start + length };
}
