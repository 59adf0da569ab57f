/** Tables of the service that app code may read. */

/** App code may write none of them, except for the `profile` of `_users`. */
export const readableSystemTables: ReadonlySet<string> = new Set(["_users", "_scheduled_functions"]);
