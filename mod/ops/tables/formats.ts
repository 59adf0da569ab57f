/** Formats of exported and imported tables. */

/** `jsonl`: one JSON document per line. `csv`: RFC 4180 with a header row. */
export const tableFormats = ["jsonl", "csv"] as const;

export type TableFormat = (typeof tableFormats)[number];

/** Additional parts of an export with files: the folder of contents by ID, file metadata, and all tables. */
export const exportedFolder = {
  files: "_storage",
  documents: "_storage.jsonl",
  tables: "_tables.jsonl",
} as const;
