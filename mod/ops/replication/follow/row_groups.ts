/** Journal rows applied to a database in transactions of many. */
import type { JournalRow, WriterDatabase } from "../../../engine/mod.ts";
import { replicationLimits } from "../../limits.ts";

export class RowGroups {
  readonly #db: WriterDatabase;
  #rows = 0;
  #chars = 0;

  constructor(db: WriterDatabase) {
    this.#db = db;
  }

  /** Throws for a row that does not fit; nothing of the open transaction is committed then. */
  apply(row: JournalRow): void {
    if (this.#rows === 0) this.#db.openGroup();
    this.#rows++;
    this.#chars += row.body.length;
    try {
      this.#db.applyRow(row);
    } catch (error) {
      this.#db.rollbackGroup();
      this.#rows = this.#chars = 0;
      throw error;
    }
    const { rowsPerCommit, charsPerCommit } = replicationLimits;
    if (this.#rows >= rowsPerCommit || this.#chars >= charsPerCommit) this.end();
  }

  end(): void {
    if (this.#rows === 0) return;
    this.#db.commitGroup(null);
    this.#rows = this.#chars = 0;
  }
}
