/** `GET /metrics` (ME1 to ME4): who may read, and the answer. */
import { createHash, timingSafeEqual } from "node:crypto";
import { MethodNotAllowedError, ServiceError } from "../../errors.ts";
import { errorResponse } from "../../kit/error_response.ts";
import type { Exposition } from "./exposition.ts";

const BEARER = /^Bearer +([^\s]+) *$/i;

/** `token`: what readers have to show; `null`: everybody may read. */
export function metricsEndpoint(
  exposition: Exposition,
  token: string | null,
): (request: Request) => Promise<Response> {
  const expected = token === null ? null : digest(token);
  return async (request) => {
    const given = BEARER.exec(request.headers.get("authorization") ?? "")?.[1];
    if (expected !== null && (given === undefined || !timingSafeEqual(digest(given), expected))) {
      const refusal = new ServiceError("invalid_token", "The metrics need the token of --metrics-token");
      return errorResponse(refusal, { "WWW-Authenticate": "Bearer" });
    }
    if (request.method !== "GET" && request.method !== "HEAD") {
      return errorResponse(new MethodNotAllowedError("GET, HEAD"));
    }
    const headers = {
      "Content-Type": exposition.contentType,
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
    };
    return new Response(await exposition.text(), { headers });
  };
}

/** Of one length whatever the text's, so that comparing tells nothing of that either. */
function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
