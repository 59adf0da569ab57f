/** Progress of long-running work. */

export interface Progress {
  /** Current activity, such as `Packing`. */
  readonly what: string;
  readonly done: number;
  /** Total; `null` if unknown. */
  readonly of: number | null;
  readonly unit: "bytes" | "documents" | "rows" | "files";
}

/** Called often, so it must be fast. Exceptions abort the work. */
export type OnProgress = (progress: Progress) => void;
