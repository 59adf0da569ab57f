/**
 * What one mutation knows of documents and has done to them: their states as they are now and as they were before, and a
 * journal of every write, by which a part of the mutation or the whole of it is undone. Savepoints of SQLite would do the
 * same for 5 us more of each small mutation.
 */
import type { DocumentWriter, StoredDocument } from "./document_writer.ts";
import { EngineError } from "../errors.ts";
import { addKeyChanges } from "../indexes/index_set.ts";
import type { Scan, StoredRow } from "../indexes/scan.ts";
import type { Table } from "../table.ts";
import type { DocumentChange, KeyChange } from "../types.ts";
import type { WriteGroup } from "../write_group.ts";

/** A document before and after a write; `null` is none. */
export interface DocumentWrite {
  readonly id: string;
  readonly before: StoredDocument | null;
  readonly after: StoredDocument | null;
}

export class DocumentChanges {
  readonly #group: WriteGroup;
  readonly #writer: DocumentWriter;
  /** Documents met or written, as they are now; `null` for deleted ones. */
  readonly #current = new Map<string, StoredDocument | null>();
  /** Documents written, undone writes included, as they were before the mutation. */
  readonly #originals = new Map<string, StoredDocument | null>();
  /** Every write, for undoing. */
  readonly #undoLog: DocumentWrite[] = [];

  constructor(group: WriteGroup, writer: DocumentWriter) {
    this.#group = group;
    this.#writer = writer;
  }

  /** A place in the journal to which {@linkcode undoTo} can return. */
  get mark(): number {
    return this.#undoLog.length;
  }

  /** A document that was met or written; `null` when it was deleted, `undefined` when nothing is known of it. */
  current(id: string): StoredDocument | null | undefined {
    return this.#current.get(id);
  }

  /** Notes a document that was read. What is known of it already is newer. */
  noteRead(stored: StoredDocument): void {
    if (!this.#current.has(stored.id)) this.#current.set(stored.id, stored);
  }

  /**
   * Writes, unless nothing changes: storing a document's own text again is no write. Open scans learn of it first.
   * The entries of both states must have been made.
   */
  write(table: Table, write: DocumentWrite, scans: Iterable<Scan>): void {
    const { id, before, after } = write;
    // Getters of the fields and the table's own checks are app code, which may have written meanwhile.
    if (before !== null && this.#current.get(id) !== before) {
      throw new EngineError(
        "not_storable",
        `Cannot write document "${id}": it was written again by a getter or a check while it was being written`,
      );
    }
    if (before !== null && after !== null && before.text === after.text) return;
    for (const scan of scans) if (scan.table === table) scan.noteWrite(id, rowIn(scan, before));
    this.#apply(before, after);
    if (!this.#originals.has(id)) this.#originals.set(id, before);
    this.#current.set(id, after);
    this.#undoLog.push(write);
  }

  /** Undoes every write since a mark. */
  undoTo(mark: number): void {
    while (this.#undoLog.length > mark) {
      const entry = this.#undoLog.pop();
      if (entry === undefined) return;
      // Open scans know of these writes already: those that began after the savepoint have been ended.
      const { id, before, after } = entry;
      this.#apply(after, before);
      this.#current.set(id, before);
    }
  }

  /** The documents that differ from before. */
  changes(): DocumentChange[] {
    const changes: DocumentChange[] = [];
    for (const [id, before] of this.#originals) {
      const after = this.#current.get(id) ?? null;
      const change = changeOf(id, { before, after });
      if (change !== null) changes.push(change);
    }
    return changes;
  }

  /** The only place that writes documents. An error of SQLite in it leaves the group fit for rollback only. */
  #apply(before: StoredDocument | null, after: StoredDocument | null): void {
    try {
      this.#writer.write(before, after);
    } catch (error) {
      this.#group.fail(error);
      throw error;
    }
  }
}

/** A document as a row of a scan. */
function rowIn(scan: Scan, stored: StoredDocument | null): StoredRow | null {
  if (stored === null) return null;
  const { position } = scan.index;
  const key = position < 0 ? stored.id : stored.entries?.keys[position] ?? "";
  return { key, rid: stored.rid, text: stored.text };
}

/** The change of one document between two states, or `null` when they are the same. */
function changeOf(
  id: string,
  states: { readonly before: StoredDocument | null; readonly after: StoredDocument | null },
): DocumentChange | null {
  const { before, after } = states;
  const table = (after ?? before)?.table;
  if (table === undefined || before?.text === after?.text) return null;
  const keys = keyChangesOf(table, { id, before, after });
  return { table: table.name, tableNumber: table.number, id, doc: after?.text ?? null, keys };
}

/** The keys of a document in two states, in every key space of its table. The entries of both must have been made. */
export function keyChangesOf(table: Table, { id, before, after }: DocumentWrite): KeyChange[] {
  const keys: KeyChange[] = [[table.space, before === null ? null : id, after === null ? null : id]];
  addKeyChanges(keys, {
    indexes: table.indexes,
    before: before?.entries ?? null,
    after: after?.entries ?? null,
  });
  return keys;
}
