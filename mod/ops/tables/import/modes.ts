/** What becomes of documents that are there already. */

export const importModes = ["insert", "upsert", "replace"] as const;

/** `insert` refuses rows with their ids, `upsert` replaces those, and `replace` first deletes them all. */
export type ImportMode = (typeof importModes)[number];
