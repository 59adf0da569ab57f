/** Limits of the bindings of all frameworks. Units are the last part of each name. */

/** Pages of one list; each is a live query, and a connection supports 1,024 of them. */
export const listPagesMax = 256;
