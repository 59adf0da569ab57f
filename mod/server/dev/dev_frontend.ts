/** `--dev-frontend`: a reverse proxy to the dev server of the app's frontend, so that pages have one origin. */
import { requestSearch } from "../../kit/http_request.ts";
import type { Frontend } from "../http/static_files.ts";

/** Headers of a single connection (RFC 9110, 7.6.1). */
const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/** Forwards to `url`, which has no trailing slash. Answers 502 if it is unreachable. */
export function devFrontend(url: string): Frontend {
  return {
    async respond(request, pathname) {
      const headers = withoutHops(request.headers);
      // The dev server expects its own name. Bodies are forwarded uncompressed.
      headers.delete("host");
      headers.set("accept-encoding", "identity");
      try {
        const response = await fetch(`${url}${pathname}${requestSearch(request)}`, {
          method: request.method,
          headers,
          body: request.body,
          redirect: "manual",
          signal: request.signal,
        });
        const { status } = response;
        const answered = withoutHops(response.headers);
        return new Response(response.body, { status, headers: answered });
      } catch {
        return new Response(`The frontend at ${url} does not answer\n`, { status: 502 });
      }
    },
  };
}

function withoutHops(given: Headers): Headers {
  const headers = new Headers(given);
  for (const name of HOP_BY_HOP) headers.delete(name);
  return headers;
}
