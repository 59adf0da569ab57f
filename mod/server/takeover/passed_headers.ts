/** How the old server tells its successor what it passes on. */

/** Names the other side of the connection that the old server has. */
export const ADDRESS_HEADER = "syncline-passed-address";
/** A call of a function, and of which kind. */
export const CALL_HEADER = "syncline-passed-call";
