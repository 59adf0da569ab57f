/** What a browser may do with an answer of the storage endpoints: show it, run nothing. */
export const contentSecurityPolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox";
