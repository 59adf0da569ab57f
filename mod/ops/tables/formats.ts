/** The formats that tables are exported to and imported from. */

/** `jsonl`: one document in a line, as JSON. `csv`: RFC 4180 with a header row. */
export const tableFormats = ["jsonl", "csv"] as const;

export type TableFormat = (typeof tableFormats)[number];
