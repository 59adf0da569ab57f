/** Limits of the engine. Names end with their unit, as in `mod/limits.ts`. */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Connections, caches and loops. */
export const engineLimits = {
  /** Prepared statements of a connection, about 4 KB each. */
  statementsMax: 1024,
  writerCacheBytes: 64 * MiB,
  readerCacheBytes: 16 * MiB,
  scratchCacheBytes: 32 * MiB,
  /** Pages in the write-ahead log that start a checkpoint in a commit. */
  checkpointPages: 16_000,
  /** The same while groups are small; checked after this many small groups in a row. */
  earlyCheckpointPages: 1000,
  groupsBetweenChecks: 16,
  smallGroupCallsMax: 8,
  /** Size of the write-ahead log after a checkpoint. */
  walBytesKept: 64 * MiB,
  /** Timeout for a lock of another process. */
  lockWaitMs: 5_000,
  /** First chunk of a scan of unknown length. */
  scanRowsFirst: 16,
  /** Largest first chunk: documents may be large. */
  scanRowsFirstMax: 64,
  /** Largest chunk: all its documents must fit in memory, at their maximum size. */
  scanRowsMax: 64,
  /** Target size of a chunk. */
  scanCharsAimed: 1 * MiB,
  exportRowsMax: 256,
  /** Target size of such a read. A larger document is read alone. */
  exportBytesAimed: 64 * KiB,
  migrationRows: 64,
  /** Further words of a search are ignored. */
  searchWordsMax: 32,
  /** Further characters of a word are ignored. */
  searchWordCharsMax: 128,
  /** First batch of search results; more are read on demand. */
  searchRowsFirst: 64,
  /** Text of search index changes that wait for the end of the group. */
  searchCharsPending: 4 * MiB,
  /** Keys of aggregates that wait for the end of the group. */
  aggregateCharsPending: 4 * MiB,
  /** Entries whose values a group checks, until it is known whether sums of the aggregate are exact. */
  aggregateEntriesChecked: 500,
  /** Fields that one aggregate sums. */
  aggregateSumsMax: 8,
  vectorDimensionsMax: 4_096,
  vectorResultsMax: 256,
  /** Vectors in memory of one connection. Larger indexes are read from disk for each search. */
  vectorBytesMax: 384 * MiB,
  /** Changes of a vector index that connections can catch up with. Connections further behind reload the index. */
  vectorChangesKept: 16_384,
  /** Confirmed journal rows removed in one transaction, and their characters. */
  journalRowsRemoved: 4_096,
  journalCharsRemoved: 8 * MiB,
  /** On a full disk a journal of at least this size is dropped, or of this share of its limit if that is less. */
  journalBytesDropped: 64 * MiB,
  journalShareDropped: 1 / 4,
  /** Imported creation times are between 1970 and this time, where their steps are exact in binary. */
  creationTimeMax: 2 ** 43,
  /** Longest time by which imported documents may be ahead of the clock. */
  creationTimeAheadMs: 86_400_000,
  /** Pending changes of a replay before it writes. */
  replayBytesGathered: 16 * MiB,
  /** Documents a replay looks up, reads, and writes at once. */
  replayRowsFound: 1_024,
  /** Row ids a replay caches, about 100 bytes each. */
  replayRidsKept: 200_000,
  replayRowsRead: 64,
  replayRowsWritten: 4_096,
  /** Index entries a check reads at once. */
  indexEntriesRead: 2_048,
  /** Journal rows read at once for replication. A longer row is read alone. */
  journalCharsRead: 4 * MiB,
} as const;

/** Replay records (SG7). */
export const replayLimits = {
  /** Minimum lifetime of a recorded response. */
  recordMs: 600_000,
  /** Sessions whose highest request id is in memory, which saves a lookup for new requests. */
  sessionsRememberedMax: 50_000,
  /** Records that share a row, and the characters after which a row is full. */
  runRecordsMax: 64,
  runCharsMax: 16 * KiB,
  /** Rows removed from the oldest table with each group, and for each row that the group saves. */
  runsRemovedPerGroup: 64,
  runsRemovedPerRun: 4,
} as const;
