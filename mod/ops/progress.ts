/** How far work that takes long is, for whoever shows it. */

export interface Progress {
  /** What is being done, as `Packing`. */
  readonly what: string;
  readonly done: number;
  /** All there is to do; `null` when nobody knows that before. */
  readonly of: number | null;
  readonly unit: "bytes" | "documents" | "rows" | "files";
}

/** Called often: must be quick. What it throws ends the work. */
export type OnProgress = (progress: Progress) => void;
