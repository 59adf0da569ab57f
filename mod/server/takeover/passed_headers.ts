/** How the old server tells its successor what it passes on. */

/** Names the other side of the connection that the old server has. */
export const ADDRESS_HEADER = "syncline-passed-address";
/** A call of a function, and of which kind. It counts only beside the key. */
export const CALL_HEADER = "syncline-passed-call";
/** What only the two servers know: what a client sends is never taken for a call of the old server. */
export const KEY_HEADER = "syncline-passed-key";
/** The address that a request was for, where it is not that of the request that passes it on. */
export const URL_HEADER = "syncline-passed-url";
/** The length of the body that was announced to whoever passes it on, which does so in pieces. */
export const LENGTH_HEADER = "syncline-passed-length";
