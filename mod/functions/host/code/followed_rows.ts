/** Applies journal rows of another server in order, including those that change tables, indexes or code. */
import { changesCatalog, type JournalRow, versionInRow } from "../../../engine/journal/journal_row.ts";
import type { Version } from "../../versions/version_store.ts";
import type { Reached } from "../../wire/messages.ts";
import { type FollowingWriter, RowsRefusedError } from "../writer/following_writer.ts";
import { BrokenVersionError, type CodeSwaps, type CodeSwapsParts } from "./code_swaps.ts";

export interface FollowedRowsParts extends Omit<CodeSwapsParts, "writer" | "log"> {
  readonly writer: FollowingWriter;
  readonly swaps: CodeSwaps;
}

export class FollowedRows {
  readonly #parts: FollowedRowsParts;

  constructor(parts: FollowedRowsParts) {
    this.#parts = parts;
  }

  /** History position of the database. */
  get reached(): Reached {
    return this.#parts.writer.reached;
  }

  /**
   * Commits the next rows. Rows that change tables or indexes restart the readers. Rejects with a `RowsRefusedError`, or if the
   * writer was lost. Calling it again continues.
   */
  async apply(rows: readonly JournalRow[]): Promise<Reached> {
    const { writer, swaps } = this.#parts;
    let plain: JournalRow[] = [];
    for (const row of rows) {
      if (!changesCatalog(row)) {
        plain.push(row);
        continue;
      }
      if (plain.length > 0) await writer.apply(plain);
      plain = [];
      const fetchNamed = this.#fetchOf(row);
      await swaps.oneByOne(() =>
        fetchNamed === null ? this.#applyCatalog(row) : this.#applyVersion(row, fetchNamed)
      );
    }
    return plain.length > 0 ? await writer.apply(plain) : writer.reached;
  }

  /** Fetches the version named by a row, if it is not the served one. */
  #fetchOf(row: JournalRow): (() => Promise<Version>) | null {
    const { code, served } = this.#parts;
    const fetchVersion = code?.fetchVersion;
    const named = fetchVersion === undefined ? undefined : versionInRow(row);
    const { version } = served;
    if (
      fetchVersion === undefined || named === undefined || named === (version?.deployed ? version.hash : null)
    ) {
      return null;
    }
    return () => fetchVersion(named, served.versions);
  }

  /** Applies a row that switches the version, unless it cannot be loaded. Afterwards queries wait until it is loaded. */
  async #applyVersion(row: JournalRow, fetchNamed: () => Promise<Version>): Promise<void> {
    const { starter, writer, readers, runners, served, commits, swaps } = this.#parts;
    const version = await fetchNamed();
    using _prepared = await starter.prepare?.(version) ?? null;
    await readers.hold();
    // Published once it can be read with its code. Until then, reads belong to the ts before.
    const { ts } = await writer.apply([row], { publishes: false }).catch((error) => {
      // A lost writer may have committed it. Queries then wait until the row is applied again.
      if (error instanceof RowsRefusedError) readers.release();
      throw error;
    });
    starter.use?.(version);
    const replaced = await writer.replace((ready) => {
      served.declare(ready);
      readers.replace();
      runners.replace();
      served.exchange(version);
    }, { start: () => starter.start("writer", version) });
    if (!replaced.ok) throw new BrokenVersionError(replaced.message);
    readers.release();
    commits.gap(ts);
    await swaps.serve(version);
  }

  /** Readers must not use a removed index or tables they do not know. */
  async #applyCatalog(row: JournalRow): Promise<void> {
    const { writer, readers, commits } = this.#parts;
    await readers.hold();
    try {
      await writer.apply([row]);
      readers.replace();
    } finally {
      readers.release();
    }
    commits.reloaded();
  }
}
