/** The engine's door: databases, ids, keys, read sets and errors. */
export {
  checkDatabase,
  checkDatabaseSchema,
  type CheckedDatabase,
  checkSqliteFile,
} from "./whole/check_database.ts";
export { type DatabaseCheckup, openCheckup } from "./whole/checkup.ts";
export { headerFault } from "./whole/database_header.ts";
export { copySqliteFile, type HeldDatabase, holdDatabase } from "./whole/database_copy.ts";
export { EngineError, type EngineErrorCode, SchemaError, UnusableDatabaseError } from "./errors.ts";
export { type ExportedRow, type ExportedRows, type ExportSnapshot, openExport } from "./whole/export.ts";
export { doesNotFit, hasNoRoom } from "./connection.ts";
export { decodeId, idSource, type NewId, newId } from "./documents/ids.ts";
export type { Inspection, KeySpaceOwner } from "./whole/inspection.ts";
export { type HistoryReplay, openHistoryReplay } from "./journal/history_replay.ts";
export type { Positions, RowsOfIndex } from "./whole/positions.ts";
export { type GenerationReason, type JournalHead } from "./journal/journal.ts";
export {
  type JournalPart,
  type JournalReader,
  openJournalReader,
  type PendingRows,
} from "./journal/journal_reader.ts";
export { clusterOfPlace, clusterPlace } from "./journal/followed.ts";
export {
  beginClusterHistory,
  beginFollowing,
  type FollowedState,
  followedState,
  forgetHistory,
} from "./journal/forget_history.ts";
export { type AppliedRows, type AppliedTable, rowEntries } from "./journal/row_entries.ts";
export {
  CATALOG_MARK,
  chainedSum,
  changesCatalog,
  firstSum,
  type JournalRow,
  readRow,
  rowTimes,
  versionNamed,
} from "./journal/row.ts";
export { compareValues, encodeKey, keyAfter } from "./indexes/keys.ts";
export { readSetTouches } from "./read_set.ts";
export { openReaderDatabase } from "./reader_database.ts";
export { openWriterDatabase, type WriterOptions } from "./writer_database.ts";
export type {
  MisfitBounds,
  ReaderDatabase,
  ReadTransaction,
  Savepoint,
  SchemaFit,
  SchemaOptions,
  TableMisfits,
  Usage,
  WriterDatabase,
  WriteTransaction,
} from "./transaction.ts";
export type {
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
export { UnfitFieldsError } from "./errors.ts";
export type {
  Bound,
  IndexBounds,
  ScanOptions,
  ScanRow,
  SearchOptions,
  VectorSearchOptions,
} from "./reading.ts";
