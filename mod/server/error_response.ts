/** Errors of the service itself, in the shape of the auth, admin and storage endpoints (contract: Error shapes). */
import { RateLimitedError, type ServiceError } from "../errors.ts";

/** `{status: "error", errorMessage, errorData: {code, data: null}}` with the error's status; never cached. */
export function errorResponse(error: ServiceError): Response {
  const response = Response.json(
    {
      status: "error",
      errorMessage: error.message,
      errorData: { code: error.code, data: null },
    },
    { status: error.status, headers: { "Cache-Control": "no-store" } },
  );
  if (error instanceof RateLimitedError) {
    response.headers.set("Retry-After", String(Math.max(1, Math.ceil(error.retryAfterMs / 1000))));
  }
  return response;
}
