/** Journal rows of another server, applied in order: also those with which tables, indexes or the code become others. */
import { changesCatalog, type JournalRow, versionInRow } from "../../../engine/journal/journal_row.ts";
import type { Version } from "../../versions/version_store.ts";
import type { Reached } from "../../wire/messages.ts";
import { type FollowingWriter, RowsRefusedError } from "../writer/following_writer.ts";
import { BrokenVersionError, type CodeSwaps, type CodeSwapsParts } from "./code_swaps.ts";

export interface FollowedRowsParts extends Omit<CodeSwapsParts, "writer" | "app" | "log"> {
  readonly writer: FollowingWriter;
  readonly swaps: CodeSwaps;
}

export class FollowedRows {
  readonly #parts: FollowedRowsParts;

  constructor(parts: FollowedRowsParts) {
    this.#parts = parts;
  }

  /** Where the database stands. */
  get reached(): Reached {
    return this.#parts.writer.reached;
  }

  /** See `IsolateHost.applyRows`. */
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
      const bring = this.#bringsOther(row);
      await swaps.oneByOne(() => bring === null ? this.#applyCatalog(row) : this.#applyVersion(row, bring));
    }
    return plain.length > 0 ? await writer.apply(plain) : writer.reached;
  }

  /** How the version is got that a row names, if it is another than is served. */
  #bringsOther(row: JournalRow): (() => Promise<Version>) | null {
    const { code, served } = this.#parts;
    const bring = code?.bring;
    const named = bring === undefined ? undefined : versionInRow(row);
    const { version } = served;
    if (bring === undefined || named === undefined || named === (version?.deployed ? version.hash : null)) {
      return null;
    }
    return () => bring(named, served.versions);
  }

  /**
   * Applies the row from which on another version is served. What cannot be had, or loaded, leaves everything as it was
   * before the row; once it is applied nothing is read until the version is there.
   */
  async #applyVersion(row: JournalRow, bring: () => Promise<Version>): Promise<void> {
    const { starter, writer, readers, runners, served, news, swaps } = this.#parts;
    const version = await bring();
    using _prepared = await starter.prepare?.(version) ?? null;
    await readers.hold();
    // Told when it can be read with its code: until then what was read before is of the ts before.
    const { ts } = await writer.apply([row], { tells: false }).catch((error) => {
      // A writer that was lost may have committed it: then nothing is read until the row comes again.
      if (error instanceof RowsRefusedError) readers.release();
      throw error;
    });
    starter.use?.(version);
    const replaced = await writer.replace(async (ready) => {
      served.declare(ready);
      await readers.replace();
      runners.replace();
      served.exchange(version);
    }, { start: () => starter.start("writer", version) });
    if (!replaced.ok) throw new BrokenVersionError(replaced.message);
    readers.release();
    news.gap(ts);
    await swaps.serve(version);
  }

  /** No reader may look for an index that is going, nor work with tables it does not know. */
  async #applyCatalog(row: JournalRow): Promise<void> {
    const { writer, readers, news } = this.#parts;
    await readers.hold();
    try {
      await writer.apply([row]);
      await readers.replace();
    } finally {
      readers.release();
    }
    news.reloaded();
  }
}
