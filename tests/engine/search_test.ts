/** Full-text search: results, their order, and which changes touch a search. */
import assert from "node:assert/strict";
import fc from "fast-check";
import {
  checkDatabase,
  openDatabaseSnapshot,
  openHistoryReplay,
  openJournalReader,
  openReaderDatabase,
  openWriterDatabase,
  readSetTouches,
} from "../../mod/engine/mod.ts";
import { loadTables } from "../../mod/engine/catalog.ts";
import { Connection, FORMAT_VERSION } from "../../mod/engine/connection.ts";
import { createSearchIndexSql, prepareSearch } from "../../mod/engine/search/search_index.ts";
import type { Doc, ReadTransaction, Value, WriteTransaction } from "../../mod/engine/mod.ts";
import { anyTable, schemaOf, TemporaryDatabase, TestDatabase } from "./support.ts";

const by_body = { name: "by_body", searchField: "body", filterFields: ["channel", "author.name"] };
const tables = { notes: anyTable({ searchIndexes: [by_body] }) };

function find(
  tx: Pick<ReadTransaction, "search">,
  query: string,
  filters: readonly (readonly [string, Value | undefined])[] = [],
): Doc[] {
  return [...tx.search("notes", "by_body", { query, filters })];
}

function bodies(
  db: TestDatabase,
  query: string,
  filters: readonly (readonly [string, Value | undefined])[] = [],
): unknown[] {
  return db.query((tx) => find(tx, query, filters).map((doc) => doc["body"]));
}

