/** The formats that tables are exported to and imported from. */

/** `jsonl`: one document in a line, as JSON. `csv`: RFC 4180 with a header row. */
export const tableFormats = ["jsonl", "csv"] as const;

export type TableFormat = (typeof tableFormats)[number];

/** What an export with uploaded files has beside its tables: the folder of contents by id, a line about each, and all tables. */
export const exportedFolder = {
  files: "_storage",
  documents: "_storage.jsonl",
  tables: "_tables.jsonl",
} as const;
