/** The log of an archive: only files that the server makes are looked into. */
import assert from "node:assert/strict";
import { DatabaseSync, type DatabaseSyncOptions } from "node:sqlite";
import { checkSqliteFile } from "../../../mod/engine/mod.ts";
import { LogDatabase } from "../../../mod/ops/log/store/log_database.ts";
import { logSchemaSql } from "../../../mod/ops/log/store/log_schema.ts";
import { Segment } from "../../../mod/ops/log/store/segment.ts";

const changes: [name: string, sql: string, told: RegExp | null][] = [
  ["nothing", "", null],
  ["a table that an earlier version did not make", "DROP TABLE figures", null],
  ["a trigger", "CREATE TRIGGER t AFTER INSERT ON runs_7 BEGIN DELETE FROM minutes; END", /the trigger "t"/],
  [
    "an expression in an index",
    "CREATE INDEX slow ON runs_7 (hex(zeroblob(length(body))))",
    /the index "slow"/,
  ],
  ["a view", "CREATE VIEW v AS SELECT 1", /the view "v"/],
  ["a foreign table", "CREATE TABLE runs_x (a)", /the table "runs_x"/],
  [
    "a foreign column",
    "ALTER TABLE runs_3 ADD COLUMN more TEXT",
    /table runs_3 differs from what the server creates/,
  ],
];

for (const [name, sql, told] of changes) {
  Deno.test(`[FA13] a log with a change in its schema: ${name}`, () => {
    const folder = Deno.makeTempDirSync({ prefix: "syncline-log-" });
    try {
      const path = `${folder}/log.db`;
      {
        using log = LogDatabase.open(path);
        log.transaction(() => [3, 7].map((no) => Segment.create(log, no, 1)));
      }
      const options = { defensive: false } as DatabaseSyncOptions;
      const file = new DatabaseSync(path, options);
      file.exec(sql);
      file.close();
      if (told === null) checkSqliteFile(path, logSchemaSql);
      else assert.throws(() => checkSqliteFile(path, logSchemaSql), told);
    } finally {
      Deno.removeSync(folder, { recursive: true });
    }
  });
}
