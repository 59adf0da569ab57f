/** Which tables of the service are no secret to the app. */

/** Tables of the service that app code may read. It may write none of them, but for the `profile` of `_users`. */
export const readableSystemTables: ReadonlySet<string> = new Set(["_users", "_scheduled_functions"]);
