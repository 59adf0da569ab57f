/** What main and the thread that hashes tell one another. Hashes, and parts of the shared memory (slots), have numbers. */

export type ToThread =
  /** The first message. */
  | { readonly type: "Memory"; readonly memory: SharedArrayBuffer }
  /** Goes on with a hash, or begins it; `end` is not included. */
  | {
    readonly type: "Update";
    readonly hash: number;
    readonly slot: number;
    readonly start: number;
    readonly end: number;
  }
  /** Ends a hash. */
  | { readonly type: "Digest"; readonly hash: number }
  /** Gives a hash up; it may not have begun. */
  | { readonly type: "Forget"; readonly hash: number };

export type FromThread =
  /** The slot can be used again. */
  | { readonly type: "Taken"; readonly slot: number }
  /** In hexadecimal. */
  | { readonly type: "Digested"; readonly hash: number; readonly sha256: string };
