/** Paths, queries and byte ranges of HTTP requests. Runs in browsers too. */

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

/** Returns the path of a request, in normal form after {@linkcode normalRequest}. */
export function requestPath({ url }: Pick<Request, "url">): string {
  const { start, end } = pathRange(url);
  return url.slice(start, end);
}

/** Returns the query of a request with its question mark; empty without one. */
export function requestSearch({ url }: Pick<Request, "url">): string {
  return /\?[^#]*/.exec(url)?.[0] ?? "";
}

/** Returns the request with its path in normal form; `null` if it has none. */
export function normalRequest(request: Request): Request | null {
  const { url } = request;
  const { start, end } = pathRange(url);
  const given = url.slice(start, end);
  const path = normalPath(given);
  if (path === null) return null;
  if (path === given) return request;
  return new Request(`${url.slice(0, start)}${path}${url.slice(end)}`, request);
}

/** Returns the position of the path in an absolute URL. */
function pathRange(url: string): { readonly start: number; readonly end: number } {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const length = url.slice(start).search(/[?#]/);
  return { start, end: length === -1 ? url.length : start + length };
}

/** Bytes of a file; both ends are inclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Parses a `Range` header for a file of `size` bytes. `null`: the whole file (no, malformed or several ranges). */
export function parseByteRange(header: string | null, size: number): ByteRange | "unsatisfiable" | null {
  const match = header?.match(/^bytes=\s*(\d*)-(\d*)\s*$/i);
  if (!match) return null;
  const [, first = "", last = ""] = match;
  if (first === "") {
    if (last === "") return null;
    const length = Math.min(Number(last), size);
    return length === 0 ? "unsatisfiable" : { start: size - length, end: size - 1 };
  }
  const start = Number(first);
  if (last !== "" && Number(last) < start) return null;
  if (start >= size) return "unsatisfiable";
  return { start, end: last === "" ? size - 1 : Math.min(Number(last), size - 1) };
}
