/** `GET /metrics` (ME1 to ME4). */
import { createHash, timingSafeEqual } from "node:crypto";
import { MethodNotAllowedError, ServiceError } from "../../errors.ts";
import { errorResponse } from "../../kit/error_response.ts";
import type { Exposition } from "./exposition.ts";

const BEARER = /^Bearer +([^\s]+) *$/i;

/** `token`: required bearer token; `null` allows everyone. */
export function metricsEndpoint(
  exposition: Exposition,
  token: string | null,
): (request: Request) => Promise<Response> {
  const expected = token === null ? null : digest(token);
  return async (request) => {
    const given = BEARER.exec(request.headers.get("authorization") ?? "")?.[1];
    if (expected !== null && (given === undefined || !timingSafeEqual(digest(given), expected))) {
      const refusal = new ServiceError(
        "invalid_token",
        "The metrics require the token set with --metrics-token",
      );
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

/** Fixed length, so that comparing does not leak the token's length. */
function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
