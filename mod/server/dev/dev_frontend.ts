/** `--dev-frontend`: a server of the app's frontend, asked by this one, so that pages have one address for everything. */
import { requestSearch } from "../../kit/request_path.ts";
import type { Frontend } from "../http/frontend.ts";

/** Headers about one connection, of which there are two here. */
const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/** Asks the server at an address, which has no slash at its end. 502 while it does not answer. */
export function devFrontend(url: string): Frontend {
  return {
    async respond(request, pathname) {
      const headers = withoutHops(request.headers);
      // It believes in the name it has itself; bodies come as they are.
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
