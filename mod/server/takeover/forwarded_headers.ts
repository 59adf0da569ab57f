/** Internal headers of forwarded requests. */

/** Address of the client. */
export const ADDRESS_HEADER = "syncline-passed-address";
/** Kind of a function call. Only valid with the key. */
export const CALL_HEADER = "syncline-passed-call";
/** Key that only the two processes know, so that clients cannot forge calls. */
export const KEY_HEADER = "syncline-passed-key";
/** URL of the original request, if it differs. */
export const URL_HEADER = "syncline-passed-url";
/** Content length of the original request, whose body is streamed. */
export const LENGTH_HEADER = "syncline-passed-length";
