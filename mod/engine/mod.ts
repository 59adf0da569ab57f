/** The engine: databases, ids, keys, read sets and errors. */
export {
  checkDatabase,
  checkDatabaseSchema,
  type CheckedDatabase,
  checkSqliteFile,
  openSnapshotCheck,
  type SnapshotCheck,
} from "./database/check_database.ts";
export { headerFault } from "./database/database_format.ts";
export { copySqliteFile, type DatabaseSnapshot, openDatabaseSnapshot } from "./database/database_copy.ts";
export { EngineError, type EngineErrorCode, SchemaError, UnusableDatabaseError } from "./errors.ts";
export { type ExportedRow, type ExportedRows, type ExportSnapshot, openExport } from "./database/export.ts";
export { isHistoryMismatch } from "./connection.ts";
export { decodeId, idSource, type NewId, newId } from "./documents/ids.ts";
export type { IndexPositions, IndexRows, Inspection, KeySpaceOwner } from "./database/inspection.ts";
export { type HistoryReplay, openHistoryReplay } from "./journal/history_replay.ts";
export { type GenerationReason, type JournalHead } from "./journal/history_head.ts";
export {
  type JournalPart,
  type JournalReader,
  openJournalReader,
  type PendingRows,
} from "./journal/journal_reader.ts";
export {
  clusterOfSource,
  clusterSource,
  type FollowerState,
  forgetHistory,
  markAsFollower,
  readFollowerState,
  startClusterHistory,
} from "./journal/history_ownership.ts";
export { type AppliedRows, type AppliedTable, rowEntries } from "./journal/row_entries.ts";
export {
  chainedSum,
  changesCatalog,
  firstSum,
  type JournalRow,
  readRow,
  rowTimes,
  versionInRow,
} from "./journal/journal_row.ts";
export { compareValues, encodeKey, keyAfter } from "./indexes/keys.ts";
export { readSetTouches } from "./read_set.ts";
export { openReaderDatabase } from "./reader_database.ts";
export { openWriterDatabase, type WriterOptions } from "./writer_database.ts";
export type {
  ReaderDatabase,
  ReadTransaction,
  Savepoint,
  SchemaOptions,
  SchemaPreview,
  TableViolations,
  Usage,
  ViolationLimits,
  WriterDatabase,
  WriteTransaction,
} from "./transaction.ts";
export type { AggregateRange } from "./aggregates/aggregate_range.ts";
export type { Totals } from "./aggregates/aggregate_reads.ts";
export type {
  AggregateDefinition,
  CommitEntry,
  Doc,
  DocumentChange,
  IndexDefinition,
  Interval,
  KeyChange,
  KeySpace,
  ReadSet,
  RecordKey,
  SchemaDefinition,
  SchemaReport,
  SearchIndexDefinition,
  TableDefinition,
  TableSize,
  Value,
  VectorIndexDefinition,
} from "./types.ts";
export { END_OF_KEYS } from "./types.ts";
export { InvalidFieldsError } from "./errors.ts";
export type {
  Bound,
  IndexBounds,
  ScanOptions,
  ScanRow,
  SearchOptions,
  VectorSearchOptions,
} from "./read_options.ts";
