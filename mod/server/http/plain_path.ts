/** One path for everybody: what routes are told apart by is what files are looked up by. */

/** What may make a URL's path another one once it is resolved. Nearly no request has any of it. */
const DOTTED = /\/\.|%2e|\\/i;

/**
 * The request with its path resolved (`/./api/x` and `/%2e/api/x` are `/api/x`), which is the request itself where
 * there is nothing to resolve.
 */
export function withPlainPath(request: Request): Request {
  const given = request.url;
  if (!DOTTED.test(given)) return request;
  const { href } = new URL(given);
  return href === given ? request : new Request(href, request);
}
