/** Internal headers of forwarded requests. */

export const ADDRESS_HEADER = "syncline-passed-address";
/** URL of the original request, if it differs. */
export const URL_HEADER = "syncline-passed-url";
/** Content length of the original request, whose body is streamed. */
export const LENGTH_HEADER = "syncline-passed-length";
