/** Formats of exported tables, and modes of imports. */

export const importModes = ["insert", "upsert", "replace"] as const;

/** `insert` rejects rows with existing IDs, `upsert` replaces these documents, `replace` deletes all documents first. */
export type ImportMode = (typeof importModes)[number];

/** `jsonl`: one JSON document per line. `csv`: RFC 4180 with a header row. */
export const tableFormats = ["jsonl", "csv"] as const;

export type TableFormat = (typeof tableFormats)[number];

/** Additional parts of an export with files: the folder of contents by ID, file metadata, and all tables. */
export const exportedFolder = {
  files: "_storage",
  documents: "_storage.jsonl",
  tables: "_tables.jsonl",
} as const;
