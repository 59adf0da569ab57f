/**
 * All errors of the service, with code, HTTP status and default message. Other files throw `new ServiceError(code)` and contain
 * no status. `UserError` is for errors of the app.
 */

/** Codes of the contract's HTTP table, with the status and the text a client sees. */
export const serviceErrors = {
  bad_request: [400, "The request is not valid"],
  email_in_use: [400, "An account with this email address already exists"],
  weak_password: [400, "The password must have at least 8 characters"],
  invalid_password: [400, "The password is not valid: it may have up to 256 characters"],
  invalid_email: [400, "The email address is not valid"],
  invalid_name: [400, "The name is not valid: it may have up to 200 characters"],
  invalid_code: [400, "The code or link is not valid or no longer valid"],
  invalid_redirect: [400, "The redirect URL is not allowed"],
  setup_done: [400, "The first administrator already exists"],
  invalid_content_type: [400, "The content type is not valid"],
  upload_failed: [400, "The upload broke off"],
  invalid_thumbnail: [400, "The thumbnail's size or fit is not valid"],
  point_unreachable: [400, "That point cannot be restored"],
  read_only: [409, "This server follows another one and takes no writes: send them to that one"],
  replication_off: [409, "The server does not replicate: it was started without --replicate-to"],
  invalid_backup: [400, "The file is no backup that can be restored"],
  invalid_bundle: [400, "The bundle cannot be used"],
  broken_functions: [400, "The functions cannot be loaded"],
  invalid_token: [401, "The access token is not valid"],
  invalid_credentials: [401, "The email address or the password is wrong"],
  invalid_refresh_token: [401, "The refresh token is not valid"],
  stale_refresh_token: [401, "The refresh token was replaced a moment ago"],
  refresh_token_reused: [401, "The refresh token was used before; the session was ended"],
  session_expired: [401, "The session has expired"],
  invalid_challenge: [401, "The sign-in took too long or was ended: sign in again"],
  invalid_passkey: [401, "The answer of the passkey is not valid"],
  unknown_passkey: [401, "The passkey is not registered here, or was removed"],
  passkey_copied: [401, "The passkey was refused because a copy of it may have been used"],
  invalid_setup_token: [401, "The setup token is not valid"],
  signups_disabled: [403, "Sign-ups are disabled"],
  origin_not_allowed: [403, "Pages of this origin may not use this server"],
  host_not_allowed: [421, "This server is not set up for this host"],
  role_required: [403, "Your role does not allow this"],
  mfa_required: [403, "A second factor is required to finish the sign-in"],
  email_not_verified: [403, "The email address is not verified yet"],
  anonymous_disabled: [403, "Anonymous sign-in is disabled"],
  magic_link_disabled: [403, "Signing in by mail is disabled"],
  key_not_permitted: [403, "The API key does not permit this call"],
  invalid_upload_url: [403, "The upload URL is not valid"],
  upload_url_expired: [403, "The upload URL has expired"],
  upload_url_used: [403, "The upload URL was used before"],
  signature_required: [403, "Files can be read with signed URLs only"],
  invalid_signature: [403, "The signature of the URL is not valid"],
  url_expired: [403, "The URL has expired"],
  access_denied: [403, "The sign-in was refused at the provider"],
  provider_error: [502, "The provider's answer cannot be used"],
  provider_unavailable: [503, "The provider cannot be reached, try again later"],
  not_found: [404, "Not found"],
  method_not_allowed: [405, "Method not allowed"],
  unknown_version: [404, "There is no such version"],
  functions_pinned: [409, "The server serves the folder it was started with"],
  deploy_in_progress: [409, "Another deploy is in progress"],
  schema_mismatch: [409, "Documents do not fit the schema"],
  upload_in_progress: [409, "Another upload with this URL is running"],
  wrong_upload_offset: [409, "The request does not continue at the offset of the upload"],
  upload_expired: [410, "The upload was not finished in time"],
  unsupported_tus_version: [412, "The server speaks tus 1.0.0"],
  body_too_large: [413, "The request body is too large"],
  file_too_large: [413, "The file is too large"],
  range_not_satisfiable: [416, "No part of the range lies inside the file"],
  unsupported_image: [415, "Thumbnails are made of JPEG, PNG, WebP and GIF images only"],
  image_too_large: [422, "The image is too large for a thumbnail"],
  invalid_image: [422, "The image cannot be decoded"],
  unsupported_media_type: [415, "The request body must be of another type"],
  rate_limited: [429, "Too many requests"],
  checksum_mismatch: [460, "The bytes do not have the checksum that came with them"],
  overloaded: [503, "The server is overloaded, try again later"],
  unavailable: [503, "The server is starting or stopping, try again in a moment"],
  outcome_unknown: [503, "It is not known whether the call was committed: check before sending it again"],
  upgrade_required: [426, "This address speaks WebSocket only"],
  backup_failed: [500, "The backup could not be made"],
  restore_failed: [500, "The restore could not be staged"],
  disk_full: [507, "There is not enough room on the server's disk"],
  import_failed: [500, "The rows could not be checked; nothing was imported"],
  import_stopped: [500, "The import stopped halfway"],
  internal: [500, "Server Error"],
} as const satisfies Record<string, readonly [status: number, message: string]>;

/** A code of {@linkcode serviceErrors}. */
export type ServiceErrorCode = keyof typeof serviceErrors;

/** An error of the service itself, shown to the caller with its code. */
export class ServiceError extends Error {
  readonly code: ServiceErrorCode;
  readonly status: number;
  /** Details beside the message, as JSON. */
  readonly data: unknown;

  constructor(
    code: ServiceErrorCode,
    message?: string,
    { data = null, ...options }: ErrorOptions & { readonly data?: unknown } = {},
  ) {
    super(message ?? serviceErrors[code][1], options);
    this.name = "ServiceError";
    this.code = code;
    this.data = data;
    this.status = serviceErrors[code][0];
  }
}

/** Too many calls; `retryAfterMs` is when one may go ahead. */
export class RateLimitedError extends ServiceError {
  readonly retryAfterMs: number;

  constructor(retryAfterMs: number) {
    super("rate_limited");
    this.retryAfterMs = retryAfterMs;
  }
}

/** Another method than those there are; `allow` lists these, as the header of that name. */
export class MethodNotAllowedError extends ServiceError {
  readonly allow: string;

  constructor(allow: string) {
    super("method_not_allowed");
    this.allow = allow;
  }
}

/** Marks a {@linkcode UserError}, also one made by another copy of this module, which an app may have bundled. */
export const userErrorKey: unique symbol = Symbol.for("syncline.userError") as never;

/**
 * An error an app throws on purpose: its message, code and data reach the caller (SG6).
 *
 * @example
 * ```ts
 * throw new UserError("empty_message", "Say something", { field: "body" });
 * ```
 */
export class UserError extends Error {
  readonly [userErrorKey] = true;
  readonly code: string;
  readonly data: unknown;

  constructor(code: string, message?: string, data: unknown = null) {
    super(message ?? code);
    this.name = "UserError";
    this.code = code;
    this.data = data;
  }
}
