/** The bounds of the engine. Units stand last in the names, as in `mod/limits.ts`. */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Limits of the engine's connections, caches and loops. */
export const engineLimits = {
  /** Prepared statements a connection keeps, about 4 KB each. */
  statementsMax: 1024,
  /** Pages the writer keeps in memory. */
  writerCacheBytes: 64 * MiB,
  /** Pages a reader keeps in memory. */
  readerCacheBytes: 16 * MiB,
  /** Pages kept in memory of a copy that is brought along its history. */
  scratchCacheBytes: 32 * MiB,
  /** Pages in the write-ahead log after which a commit copies them into the database file. */
  checkpointPages: 16_000,
  /** The same while groups are small, where it delays no answer; looked at when so many have come in a row. */
  earlyCheckpointPages: 1000,
  groupsBetweenChecks: 16,
  /** Calls of a small group. */
  smallGroupCallsMax: 8,
  /** The write-ahead log is cut to this when it has been copied. */
  walBytesKept: 64 * MiB,
  /** A connection waits this long for a lock that another process holds. */
  lockWaitMs: 5_000,
  /** Rows a scan reads at first when it does not know how many are wanted. */
  scanRowsFirst: 16,
  /** Rows a scan reads at first however many are wanted: documents may be large. */
  scanRowsFirstMax: 64,
  /** Rows a scan reads at once. What comes next may be the largest documents there are, and all must fit in memory. */
  scanRowsMax: 64,
  /** Characters of documents a scan aims to read at once. */
  scanCharsAimed: 1 * MiB,
  /** Documents an export reads at once. */
  exportRowsMax: 256,
  /** Bytes of the documents an export reads at once; a larger document is read alone. */
  exportBytesAimed: 64 * KiB,
  /** Documents a schema change holds in memory at once. */
  migrationRows: 64,
  /** Words of a search that count; the rest is left out. */
  searchWordsMax: 32,
  /** Characters of a word that count. */
  searchWordCharsMax: 128,
  /** Documents a search looks up at first; it goes on when more are asked for. */
  searchRowsFirst: 64,
  /** Changes to search indexes that wait for the end of the group, as characters of text. */
  searchCharsPending: 4 * MiB,
  /** Numbers in a vector. */
  vectorDimensionsMax: 4_096,
  /** Documents one vector search may give back. */
  vectorResultsMax: 256,
  /** Vectors kept in memory by one connection; larger indexes are read from disk at each search. */
  vectorBytesMax: 384 * MiB,
  /** Changes of a vector index kept for connections to catch up with; older ones load the index again. */
  vectorChangesKept: 16_384,
  /** Journal rows that are removed in one transaction once they are safe elsewhere, and the characters in them. */
  journalRowsRemoved: 4_096,
  journalCharsRemoved: 8 * MiB,
  /** A journal is dropped for a full disk from so many bytes on, or from this share of what may wait when that is less. */
  journalBytesDropped: 64 * MiB,
  journalShareDropped: 1 / 4,
  /** Creation times that come from elsewhere lie between 1970 and here, up to where steps of them are exact in binary. */
  creationTimeMax: 2 ** 43,
  /** Those of single documents lie at most this far ahead of the clock. */
  creationTimeAheadMs: 86_400_000,
  /** Bytes of a history that a replay gathers before it writes: of what changes often only the last state is written. */
  replayBytesGathered: 16 * MiB,
  /** Documents that a replay looks up at once, reads at once (they may be the largest there are), and writes in one transaction. */
  replayRowsFound: 1_024,
  /** Row ids that a replay keeps of documents that have changed, about 100 bytes each. */
  replayRidsKept: 200_000,
  replayRowsRead: 64,
  replayRowsWritten: 4_096,
  /** Entries of an index that a check reads at once. */
  indexEntriesRead: 2_048,
  /** Characters of journal rows that are read at once, to be copied elsewhere; a longer row is read alone. */
  journalCharsRead: 4 * MiB,
} as const;

/** Limits of replay records (SG7). */
export const replayLimits = {
  /** A recorded response is kept at least this long. */
  recordMs: 600_000,
  /** Sessions whose highest request id the writer remembers, to skip the look-up for new requests. */
  sessionsRememberedMax: 50_000,
  /** Records that share a row, and the characters from which on a row takes no more of them. */
  runRecordsMax: 64,
  runCharsMax: 16 * KiB,
  /** Rows removed from the oldest table with each group, and for each row the group saves. */
  runsRemovedPerGroup: 64,
  runsRemovedPerRun: 4,
} as const;
