/** The log of an archive: files with other tables than those of the server are rejected. */
import assert from "node:assert/strict";
import { DatabaseSync, type DatabaseSyncOptions } from "node:sqlite";
import { checkSqliteFile } from "../../../mod/engine/mod.ts";
import { LOG_SCHEMA_SQL, LogDatabase } from "../../../mod/ops/log/store/log_database.ts";

const changes: [name: string, sql: string, fault: RegExp | null][] = [
  ["nothing", "", null],
  ["a table that an earlier version did not create", "DROP TABLE figures", null],
  ["a trigger", "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM counts; END", /the trigger "t"/],
  [
    "an expression in an index",
    "CREATE INDEX slow ON runs (hex(zeroblob(length(path))))",
    /the index "slow"/,
  ],
  ["a view", "CREATE VIEW v AS SELECT 1", /the view "v"/],
  ["a foreign table", "CREATE TABLE runs_x (a)", /the table "runs_x"/],
  [
    "a foreign column",
    "ALTER TABLE runs ADD COLUMN more TEXT",
    /table runs differs from what the server creates/,
  ],
];

for (const [name, sql, fault] of changes) {
  Deno.test(`[FA13] a log with a change in its schema: ${name}`, () => {
    const folder = Deno.makeTempDirSync({ prefix: "syncline-log-" });
    try {
      const path = `${folder}/log.db`;
      LogDatabase.open(path)[Symbol.dispose]();
      const options = { defensive: false } as DatabaseSyncOptions;
      const file = new DatabaseSync(path, options);
      file.exec(sql);
      file.close();
      if (fault === null) checkSqliteFile(path, () => LOG_SCHEMA_SQL);
      else assert.throws(() => checkSqliteFile(path, () => LOG_SCHEMA_SQL), fault);
    } finally {
      Deno.removeSync(folder, { recursive: true });
    }
  });
}
