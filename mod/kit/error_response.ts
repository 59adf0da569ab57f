/** HTTP responses for errors, in the format of the auth, admin and storage endpoints (AE1). */
import { MethodNotAllowedError, RateLimitedError, ServiceError, UserError } from "../errors.ts";
import { isDiskFull } from "./durable_files.ts";
import type { Log } from "./log.ts";

/** Returns `{status: "error", errorMessage, errorData: {code, data}}` with the error's status. Never cached. */
export function errorResponse(
  error: ServiceError,
  further: Readonly<Record<string, string>> = {},
): Response {
  const headers = new Headers({
    ...further,
    "Cache-Control": "no-store",
    "Link": `</_/docs/errors#${error.code}>; rel="help"`,
  });
  if (error instanceof RateLimitedError) {
    headers.set("Retry-After", String(Math.ceil(error.retryAfterMs / 1000)));
  } else if (error.status === 503) {
    headers.set("Retry-After", "1");
  }
  if (error instanceof MethodNotAllowedError) headers.set("Allow", error.allow);
  const errorData = { code: error.code, data: error.data };
  return Response.json({ status: "error", errorMessage: error.message, errorData }, {
    status: error.status,
    headers,
  });
}

/** Returns the response for an error that the app threw, with status 400. */
export function refusalResponse(
  { message, code, data }: UserError,
  further: Readonly<Record<string, string>> = {},
): Response {
  return Response.json({ status: "error", errorMessage: message, errorData: { code, data: data ?? null } }, {
    status: 400,
    headers: { ...further, "Cache-Control": "no-store" },
  });
}

/** Returns the response for any error, or for the `ServiceError` that caused it. Logs unexpected ones, hiding details. */
export function failureResponse(
  error: unknown,
  log: Log,
  further: Readonly<Record<string, string>> = {},
): Response {
  if (error instanceof ServiceError) return errorResponse(error, further);
  if (error instanceof Error && error.cause instanceof ServiceError) {
    return errorResponse(error.cause, further);
  }
  if (error instanceof UserError) return refusalResponse(error, further);
  if (isDiskFull(error)) {
    log("error", "A request failed: the disk is full", { error });
    return errorResponse(new ServiceError("disk_full", undefined, { cause: error }), further);
  }
  log("error", "A request failed", { error });
  return errorResponse(new ServiceError("internal"), further);
}
