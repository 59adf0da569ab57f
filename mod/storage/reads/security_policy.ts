/** Policy of storage responses: may be displayed, cannot run scripts. */
export const contentSecurityPolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox";
