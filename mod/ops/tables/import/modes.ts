/** How imports treat existing documents. */

export const importModes = ["insert", "upsert", "replace"] as const;

/** `insert` rejects rows with existing IDs, `upsert` replaces these documents, `replace` deletes all documents first. */
export type ImportMode = (typeof importModes)[number];
