/** The client's version, sent with Connect; the same as the program's in `deno.json`. */
export const CLIENT_VERSION = "0.1.0";
