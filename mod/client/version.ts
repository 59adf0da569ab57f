/** The client's version, sent with Connect; equal to the program's version in `deno.json`. */
export const CLIENT_VERSION = "0.1.0";
