/**
 * Every error the service answers with, once: code, HTTP status, default text. Code elsewhere throws
 * `new ServiceError(code)`; nobody else writes a status or a code. `UserError` is the app's own.
 */

/** Codes of the contract's HTTP table, with the status and the text a client sees. */
export const serviceErrors = {
  bad_request: [400, "The request is not valid"],
  invalid_token: [401, "The access token is not valid"],
  not_found: [404, "Not found"],
  method_not_allowed: [405, "Method not allowed"],
  body_too_large: [413, "The request body is too large"],
  unsupported_media_type: [415, "The request body must be JSON"],
  rate_limited: [429, "Too many requests"],
  overloaded: [503, "The server is overloaded, try again later"],
  internal: [500, "Server Error"],
} as const satisfies Record<string, readonly [status: number, message: string]>;

/** A code of {@linkcode serviceErrors}. */
export type ServiceErrorCode = keyof typeof serviceErrors;

/** An error of the service itself, shown to the caller with its code. */
export class ServiceError extends Error {
  readonly code: ServiceErrorCode;
  readonly status: number;

  constructor(code: ServiceErrorCode, message?: string, options?: ErrorOptions) {
    super(message ?? serviceErrors[code][1], options);
    this.name = "ServiceError";
    this.code = code;
    this.status = serviceErrors[code][0];
  }
}

/**
 * An error an app throws on purpose: its message, code and data reach the caller (contract: guarantee 6).
 *
 * @example
 * ```ts
 * throw new UserError("empty_message", "Say something", { field: "body" });
 * ```
 */
export class UserError extends Error {
  readonly code: string;
  readonly data: unknown;

  constructor(code: string, message?: string, data: unknown = null) {
    super(message ?? code);
    this.name = "UserError";
    this.code = code;
    this.data = data;
  }
}
