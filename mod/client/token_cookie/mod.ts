/**
 * `syncline/token-cookie`: keeps the access token of `client.auth` in a cookie too, so that a server that renders pages reads it and
 * runs queries as the user.
 *
 * @module
 */
export { tokenCookie, type TokenCookieOptions } from "./token_cookie.ts";
