/** Errors of the service itself, in the shape of the auth, admin and storage endpoints (contract: Error shapes). */
import { ServiceError } from "../errors.ts";

/** `{status: "error", errorMessage, errorData: {code, data: null}}` with the error's status; never cached. */
export function errorResponse(error: ServiceError): Response {
  return Response.json(
    {
      status: "error",
      errorMessage: error.message,
      errorData: { code: error.code, data: null },
    },
    { status: error.status, headers: { "Cache-Control": "no-store" } },
  );
}
