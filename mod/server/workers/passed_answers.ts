/** What a leader says beside its answers to requests that other servers have passed on. No client is told of it. */
import { ServiceError } from "../../errors.ts";
import { errorResponse } from "../../kit/error_response.ts";

/** The commit up to which the answer may show something. */
export const SHOWN_HEADER = "syncline-passed-ts";
/** Nothing has happened: this server does not lead. */
export const REFUSED_HEADER = "syncline-passed-refused";

/** An answer of a leader whose newest commit is `ts`. */
export function shownAt(ts: number, answer: Response): Response {
  const headers = new Headers(answer.headers);
  headers.set(SHOWN_HEADER, String(ts));
  // An app may send back what it was sent: that something has not happened is for the server to say.
  headers.delete(REFUSED_HEADER);
  const { body, status, statusText } = answer;
  return new Response(body, { headers, status, statusText });
}

/** The answer of a server that does not lead. */
export function refusedHere(): Response {
  return errorResponse(new ServiceError("unavailable"), { [REFUSED_HEADER]: "1" });
}

/** What an answer says beside itself, which is taken from its headers. */
export function takeSaid(headers: Headers): { readonly ts: number; readonly refused: boolean } {
  const said = { ts: Number(headers.get(SHOWN_HEADER) ?? 0), refused: headers.has(REFUSED_HEADER) };
  headers.delete(SHOWN_HEADER);
  headers.delete(REFUSED_HEADER);
  return said;
}
