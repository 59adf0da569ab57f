/** Limits of the code in `kit`. Names end with their unit, as in `mod/limits.ts`. */

const KiB = 1024;
const MiB = 1024 * KiB;

export const csvLimits = {
  /** Tables whose documents have more fields are exported as JSONL. */
  columnsMax: 2_048,
  /** The largest document has fewer, with every quote in it doubled. */
  rowBytesMax: 8 * MiB,
} as const;

/** Limits of objects in folders and buckets. */
export const objectLimits = {
  /** Attempts for a request that gets no answer or `503`. */
  attempts: 3,
  /** First pause after a busy answer and after a broken connection; each next pause doubles. */
  busyPauseMs: 500,
  brokenPauseMs: 100,
  /** Longest pause, also if the service asks for more. */
  pauseMsMax: 20_000,
  /** Timeout of a request, including its retries. */
  requestMs: 300_000,
  /** Part size of uploads; the minimum of S3. */
  partBytes: 5 * MiB,
  /** Maximum number of parts of an upload, set by the services; very large files have larger parts. */
  partsMax: 10_000,
  /** Time without bytes after which a read fails. */
  stallMs: 60_000,
  /** Attempts to resume a read without progress. */
  resumesMax: 5,
  /** For services without conditional writes: delay before a new object is read again. */
  settleMs: 500,
  /** Unfinished uploads aborted in one call. */
  unfinishedEndedMax: 500,
  /** Pages of unfinished uploads listed in one call, of 1,000 each. */
  unfinishedPagesMax: 100,
  /** Bytes written to a new file between early syncs, which keep the final sync short. */
  earlySyncBytes: 8 * MiB,
  /** Read size for a part of a file. */
  readChunkBytes: 256 * KiB,
  /** Subfolders remembered as existing. */
  foldersKnownMax: 1_024,
  /** Attempts to list a folder from which files disappear. */
  listingsMax: 5,
} as const;
