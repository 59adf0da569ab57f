/** Headers between leader and forwarding process, which clients never see. */
import { ServiceError } from "../../errors.ts";
import { errorResponse } from "../../kit/error_response.ts";

/** ts of the newest commit that the response may show. */
export const SHOWN_HEADER = "syncline-passed-ts";
/** The request was not processed, because this server does not lead. */
export const REFUSED_HEADER = "syncline-passed-refused";

/** Adds the leader's newest ts to a response. */
export function withTsHeader(ts: number, answer: Response): Response {
  const headers = new Headers(answer.headers);
  headers.set(SHOWN_HEADER, String(ts));
  // An app may echo request headers: only the server may state this.
  headers.delete(REFUSED_HEADER);
  const { body, status, statusText } = answer;
  return new Response(body, { headers, status, statusText });
}

export function notLeaderResponse(): Response {
  return errorResponse(new ServiceError("unavailable"), { [REFUSED_HEADER]: "1" });
}

/** Removes the headers from a forwarded response and returns their values. */
export function takeInternalHeaders(headers: Headers): { readonly ts: number; readonly refused: boolean } {
  const values = { ts: Number(headers.get(SHOWN_HEADER) ?? 0), refused: headers.has(REFUSED_HEADER) };
  headers.delete(SHOWN_HEADER);
  headers.delete(REFUSED_HEADER);
  return values;
}
