/** The SQLite tables of every database. */
import { CREATE_CATALOG_SQL } from "../catalog.ts";
import { CREATE_RECORDS_SQL } from "../replay_records.ts";

const CREATE_STATE_SQL = `
  CREATE TABLE syncline_state (one INTEGER PRIMARY KEY CHECK (one = 1),
    ts INTEGER NOT NULL, lastCreationTime REAL NOT NULL, lastGroup TEXT);
  INSERT INTO syncline_state (one, ts, lastCreationTime) VALUES (1, 0, 0);`;

export const CREATE_DATABASE_SQL = `${CREATE_CATALOG_SQL} ${CREATE_RECORDS_SQL} ${CREATE_STATE_SQL}`;
