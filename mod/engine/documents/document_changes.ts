/** Documents read and written by a mutation, with an undo log: SQLite savepoints would add 5 µs each. */
import { EngineError } from "../errors.ts";
import { addKeyChanges } from "../indexes/index_set.ts";
import type { Scan, StoredRow } from "../indexes/scan.ts";
import type { Table } from "../table.ts";
import type { DocumentChange, KeyChange } from "../types.ts";
import type { DocumentWriter, StoredDocument } from "./document_writer.ts";

/** Step between creation times, in milliseconds; exact in binary until the year 2240. */
const CREATION_STEP_MS = 2 ** -10;

/** State shared by the mutations of a group: the next creation time, and whether a write failed. */
export class WriteGroup {
  #lastCreationTime: number;
  #failure: { readonly cause: unknown } | null = null;

  constructor(lastCreationTime: number) {
    this.#lastCreationTime = lastCreationTime;
  }

  /** Creation time of the newest document, ms since the epoch. A rollback sets it back. */
  get lastCreationTime(): number {
    return this.#lastCreationTime;
  }

  /** Returns the next creation time: `at`, or just after the last one. */
  nextCreationTime(at: number): number {
    this.#lastCreationTime = Math.max(at, this.#lastCreationTime + CREATION_STEP_MS);
    return this.#lastCreationTime;
  }

  /** Releases the creation times of an undone mutation. */
  rewindCreationTime(to: number): void {
    this.#lastCreationTime = to;
  }

  get failed(): boolean {
    return this.#failure !== null;
  }

  /** Records that a write failed and may be incomplete: only `rollbackGroup` is possible then. */
  fail(cause: unknown): void {
    this.#failure ??= { cause };
  }

  /** Throws if the group can only be rolled back, even if app code caught the first error. */
  check(): void {
    if (this.#failure === null) return;
    const { cause } = this.#failure;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new EngineError("failed_group", `The database failed to write: ${reason}`, { cause });
  }
}

/** A document before and after a write; `null` if there is none. */
export interface DocumentWrite {
  readonly id: string;
  readonly before: StoredDocument | null;
  readonly after: StoredDocument | null;
}

export class DocumentChanges {
  readonly #group: WriteGroup;
  readonly #writer: DocumentWriter;
  /** Current states of documents read or written; `null` if deleted. */
  readonly #current = new Map<string, StoredDocument | null>();
  /** Original states of written documents, including undone writes. */
  readonly #originals = new Map<string, StoredDocument | null>();
  readonly #undoLog: DocumentWrite[] = [];

  constructor(group: WriteGroup, writer: DocumentWriter) {
    this.#group = group;
    this.#writer = writer;
  }

  /** A position in the log for {@linkcode undoTo}. */
  get mark(): number {
    return this.#undoLog.length;
  }

  /** Returns the current state of a document; `null` if it was deleted, `undefined` if it is unknown. */
  current(id: string): StoredDocument | null | undefined {
    return this.#current.get(id);
  }

  /** Records a document that was read, unless a newer state is known. */
  noteRead(stored: StoredDocument): void {
    if (!this.#current.has(stored.id)) this.#current.set(stored.id, stored);
  }

  /** Writes a document if its text changes, after notifying open scans. Both states must have their index entries. */
  write(table: Table, write: DocumentWrite, scans: Iterable<Scan>): void {
    const { id, before, after } = write;
    // Getters and the table's validator are app code and may have written the document.
    if (before !== null && this.#current.get(id) !== before) {
      throw new EngineError(
        "not_storable",
        `Cannot write document "${id}": a getter or a validator wrote it at the same time`,
      );
    }
    if (before !== null && after !== null && before.text === after.text) return;
    for (const scan of scans) if (scan.table === table) scan.noteWrite(id, rowIn(scan, before));
    this.#apply(before, after);
    if (!this.#originals.has(id)) this.#originals.set(id, before);
    this.#current.set(id, after);
    this.#undoLog.push(write);
  }

  undoTo(mark: number): void {
    while (this.#undoLog.length > mark) {
      const entry = this.#undoLog.pop();
      if (entry === undefined) return;
      // Open scans know these writes. Scans that started after the savepoint have been invalidated.
      const { id, before, after } = entry;
      this.#apply(after, before);
      this.#current.set(id, before);
    }
  }

  /** Returns the documents that differ from their original state. */
  changes(): DocumentChange[] {
    const changes: DocumentChange[] = [];
    for (const [id, before] of this.#originals) {
      const after = this.#current.get(id) ?? null;
      const change = changeOf(id, { before, after });
      if (change !== null) changes.push(change);
    }
    return changes;
  }

  /** The only place that writes documents. After an SQLite error the group can only be rolled back. */
  #apply(before: StoredDocument | null, after: StoredDocument | null): void {
    try {
      this.#writer.write(before, after);
    } catch (error) {
      this.#group.fail(error);
      throw error;
    }
  }
}

function rowIn(scan: Scan, stored: StoredDocument | null): StoredRow | null {
  if (stored === null) return null;
  const { position } = scan.index;
  const key = position < 0 ? stored.id : stored.entries?.keys[position] ?? "";
  return { key, rid: stored.rid, text: stored.text };
}

/** Returns the change of a document, or `null` if both states are equal. */
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

/** Returns the keys of a document in two states, in all key spaces of its table. Both must have their index entries. */
export function keyChangesOf(table: Table, { id, before, after }: DocumentWrite): KeyChange[] {
  const keys: KeyChange[] = [[table.space, before === null ? null : id, after === null ? null : id]];
  addKeyChanges(keys, {
    indexes: table.indexes,
    before: before?.entries ?? null,
    after: after?.entries ?? null,
  });
  return keys;
}
