/** A range of an aggregate, as functions read it: totals, the document at a position, and the position of a document. */
import type { Tables } from "../catalog.ts";
import type { Connection } from "../connection.ts";
import { ID_CHARS } from "../documents/ids.ts";
import type { StoredFields } from "../documents/system_fields.ts";
import { rangeOfScan } from "../indexes/bounds.ts";
import { keyAfter, type KeyRange } from "../indexes/keys.ts";
import type { IndexBounds } from "../read_options.ts";
import type { ReadSetRecorder } from "../read_set.ts";
import type { Table } from "../table.ts";
import type { Doc } from "../types.ts";
import { aggregateEntries, type AggregateIndex } from "./aggregate_index.ts";
import { keyAt, type Totals, totalsOfRange } from "./aggregate_reads.ts";

export interface AggregateOwner {
  readonly connection: Connection;
  /** `null` for mutations. */
  readonly recorder: ReadSetRecorder | null;
  /** Throws if the run has ended. */
  check(): void;
  get(id: string): Doc | null;
  /** Called before nodes are read. */
  beforeAggregate(): void;
}

export class AggregateRange {
  readonly #owner: AggregateOwner;
  readonly #tables: Tables;
  readonly #table: Table;
  readonly #index: AggregateIndex;
  readonly #range: KeyRange;

  /** Throws an `EngineError` for an unknown aggregate or bounds that do not match it. */
  constructor(
    owner: AggregateOwner,
    request: {
      readonly tables: Tables;
      readonly table: string;
      readonly aggregate: string;
      readonly bounds: IndexBounds;
    },
  ) {
    const { tables, bounds } = request;
    this.#owner = owner;
    this.#tables = tables;
    this.#table = tables.named(request.table);
    this.#index = tables.aggregate(this.#table, request.aggregate);
    this.#range = rangeOfScan(this.#table, { index: this.#index, bounds, options: { order: "asc" } });
  }

  totals(): Totals {
    this.#begin(this.#range);
    return totalsOfRange(this.#owner.connection, this.#index, this.#range);
  }

  /** Returns the document at a position; negative positions count from the end. `null` outside of the range. */
  at(position: number): Doc | null {
    const { lo, hi } = this.#range;
    const isFromEnd = position < 0;
    if (lo >= hi) return null;
    this.#owner.check();
    this.#owner.beforeAggregate();
    const { connection } = this.#owner;
    const index = this.#index;
    const from = isFromEnd ? position + totalsOfRange(connection, index, this.#range).count : position;
    const key = from < 0 ? null : keyAt(connection, index, { range: this.#range, position: from });
    if (key === null) this.#begin(this.#range);
    else this.#begin(isFromEnd ? { lo: key, hi } : { lo, hi: keyAfter(key) });
    return key === null ? null : this.#owner.get(key.slice(-ID_CHARS));
  }

  /** Returns the position of a document in the range; -1 if it is not in it. */
  indexOf(id: string): number {
    const doc = this.#owner.get(id);
    const { lo, hi } = this.#range;
    if (doc === null || this.#tables.ofId(id) !== this.#table) return -1;
    const [entry] = aggregateEntries([this.#index], doc as Doc & StoredFields);
    if (entry === undefined || entry.key < lo || entry.key >= hi) return -1;
    this.#begin({ lo, hi: keyAfter(entry.key) });
    return totalsOfRange(this.#owner.connection, this.#index, { lo, hi: entry.key }).count;
  }

  /** Records a range as read. */
  #begin({ lo, hi }: KeyRange): void {
    const { recorder } = this.#owner;
    this.#owner.check();
    this.#owner.beforeAggregate();
    recorder?.extendRange(recorder.beginRange(this.#index.space), lo, hi);
  }
}
