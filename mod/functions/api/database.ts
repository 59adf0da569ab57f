/** Types of `ctx.db`: reading, writing and queries on one table. */
import type { Passed } from "../../protocol/function_reference.ts";
import type {
  DataModel,
  DocumentOf,
  FieldNames,
  FieldPath,
  FieldValue,
  Id,
  Readable,
  SystemFields,
  TableNames,
  TableTypes,
} from "./values.ts";

/** Order of rows by the index: ascending or descending. */
export type Order = "asc" | "desc";

/** Indexes of every table. */
type BuiltInIndexes = { readonly by_creation_time: readonly []; readonly by_id: readonly ["_id"] };

type IndexesOf<Table extends TableTypes> = Table["indexes"] & BuiltInIndexes;

type Head<Fields extends FieldNames> = Fields extends readonly [infer First extends string, ...FieldNames]
  ? First
  : Fields extends readonly [] ? "_creationTime"
  : string;

type Tail<Fields extends FieldNames> = Fields extends readonly [string, ...infer Rest extends FieldNames]
  ? Rest
  : Fields extends readonly [] ? never
  : FieldNames;

/** After a lower bound: optionally an upper bound on the same field. */
export interface UpperBoundBuilder<Fields, Field extends string> extends IndexRange {
  lt(field: Field, value: FieldValue<Fields, Field>): IndexRange;
  lte(field: Field, value: FieldValue<Fields, Field>): IndexRange;
}

/** After an upper bound: optionally a lower bound on the same field. */
export interface LowerBoundBuilder<Fields, Field extends string> extends IndexRange {
  gt(field: Field, value: FieldValue<Fields, Field>): IndexRange;
  gte(field: Field, value: FieldValue<Fields, Field>): IndexRange;
}

/** A range of an index: equal values for its first fields in order, then at most one range on the next field. */
export interface IndexRangeBuilder<Fields, Names extends FieldNames> extends IndexRange {
  eq(field: Head<Names>, value: FieldValue<Fields, Head<Names>>): IndexRangeBuilder<Fields, Tail<Names>>;
  gt(field: Head<Names>, value: FieldValue<Fields, Head<Names>>): UpperBoundBuilder<Fields, Head<Names>>;
  gte(field: Head<Names>, value: FieldValue<Fields, Head<Names>>): UpperBoundBuilder<Fields, Head<Names>>;
  lt(field: Head<Names>, value: FieldValue<Fields, Head<Names>>): LowerBoundBuilder<Fields, Head<Names>>;
  lte(field: Head<Names>, value: FieldValue<Fields, Head<Names>>): LowerBoundBuilder<Fields, Head<Names>>;
}

/** Return type of the `withIndex` callback. */
export interface IndexRange {
  readonly "~range"?: never;
}

/** Return type of the `withSearchIndex` callback. */
export interface SearchFilter {
  readonly "~search"?: never;
}

export interface SearchFilterBuilder<Fields, SearchField extends string, FilterFields extends string> {
  /** Matches documents that contain these words, the last one also as a prefix. Best matches first. */
  search(field: SearchField, query: string): SearchFilterFinalizer<Fields, FilterFields>;
}

export interface SearchFilterFinalizer<Fields, FilterFields extends string> extends SearchFilter {
  eq<Field extends FilterFields>(
    field: Field,
    value: FieldValue<Fields, Field>,
  ): SearchFilterFinalizer<Fields, FilterFields>;
}

/** A value computed from a document by {@linkcode FilterBuilder}. */
export interface Expression<Result> {
  readonly "~result"?: Result;
}

/** Builds the condition of `filter`. Values compare in index order. */
export interface FilterBuilder<Fields> {
  field<Path extends FieldPath<Fields> | "_id">(path: Path): Expression<FieldValue<Fields, Path>>;
  eq<T>(left: Operand<T>, right: Operand<T>): Expression<boolean>;
  neq<T>(left: Operand<T>, right: Operand<T>): Expression<boolean>;
  lt<T>(left: Operand<T>, right: Operand<T>): Expression<boolean>;
  lte<T>(left: Operand<T>, right: Operand<T>): Expression<boolean>;
  gt<T>(left: Operand<T>, right: Operand<T>): Expression<boolean>;
  gte<T>(left: Operand<T>, right: Operand<T>): Expression<boolean>;
  add(left: Operand<number>, right: Operand<number>): Expression<number>;
  sub(left: Operand<number>, right: Operand<number>): Expression<number>;
  mul(left: Operand<number>, right: Operand<number>): Expression<number>;
  div(left: Operand<number>, right: Operand<number>): Expression<number>;
  mod(left: Operand<number>, right: Operand<number>): Expression<number>;
  neg(operand: Operand<number>): Expression<number>;
  and(...operands: Operand<boolean>[]): Expression<boolean>;
  or(...operands: Operand<boolean>[]): Expression<boolean>;
  not(operand: Operand<boolean>): Expression<boolean>;
}

export type Operand<T> = Expression<T> | T;

export interface PaginationOptions {
  /** `null` for the first page, then the `continueCursor` of the previous page. */
  readonly cursor: string | null;
  /** Number of rows; a page may have fewer. */
  readonly numItems: number;
  /**
   * Ends the page at this cursor (the `continueCursor` of its previous run) regardless of rows added or removed since, so that
   * adjacent pages neither skip nor repeat rows. `numItems` is then ignored.
   */
  readonly endCursor?: string | null | undefined;
  /** Ends the page early when a filter rejects many rows. */
  readonly maximumRowsRead?: number | undefined;
  /** Ends the page after the document with which this many characters have been read, even before `endCursor`. */
  readonly maximumCharsRead?: number | undefined;
}

export interface PaginationResult<Document> {
  readonly page: Document[];
  /** Whether the page is the last one. */
  readonly isDone: boolean;
  readonly continueCursor: string;
  /**
   * Where to split a page with an `endCursor` that has grown beyond twice `numItems`: after its first `numItems` rows. The pages
   * from `cursor` to `splitCursor` and from there to `endCursor` contain the same rows.
   */
  readonly splitCursor?: string;
}

/** A query with fixed rows and order: it can be filtered and run. */
export interface OrderedQuery<Document> extends AsyncIterable<Document> {
  /**
   * Keeps rows that match a condition: an expression such as `(q) => q.eq(q.field("done"), false)`, or a predicate on the
   * document such as `(row) => !row.done`. Rows are read before they are filtered, so an index is faster.
   */
  filter(
    condition: (row: Document & FilterBuilder<Document>) => boolean | Expression<boolean>,
  ): this;
  /** Returns all rows. */
  collect(): Promise<Document[]>;
  /** Returns the first `count` rows. */
  take(count: number): Promise<Document[]>;
  /** Returns the first row, or `null`. */
  first(): Promise<Document | null>;
  /** Returns the only row, or `null`. Throws if there are several. */
  unique(): Promise<Document | null>;
  paginate(options: PaginationOptions): Promise<PaginationResult<Document>>;
}

/** A query with fixed rows. */
export interface UnorderedQuery<Document> extends OrderedQuery<Document> {
  order(order: Order): OrderedQuery<Document>;
  /**
   * Returns the number of rows. Counts the entries of the index without reading documents, so the limits for documents do not
   * apply: one call may count 10,000,000 entries. A live query that counts runs again when a document in the range changes.
   * @throws TypeError after `filter`, which needs the documents.
   */
  count(): Promise<number>;
}

/** A query on a table. Default: all rows by creation time. */
export interface TableQuery<Document, Table extends TableTypes> extends UnorderedQuery<Document> {
  withIndex<Name extends keyof IndexesOf<Table> & string>(
    name: Name,
    range?: (q: IndexRangeBuilder<Document, IndexesOf<Table>[Name]>) => IndexRange,
  ): UnorderedQuery<Document>;
  withSearchIndex<Name extends keyof Table["searchIndexes"] & string>(
    name: Name,
    filter: (
      q: SearchFilterBuilder<
        Document,
        Table["searchIndexes"][Name]["searchField"],
        Table["searchIndexes"][Name]["filterFields"]
      >,
    ) => SearchFilter,
  ): OrderedQuery<Document>;
}

/** Builds the filter of `vectorSearch`: one value, or several values of one field. */
export interface VectorFilterBuilder<Fields, FilterFields extends string> {
  eq<Field extends FilterFields>(field: Field, value: FieldValue<Fields, Field>): VectorFilter;
  or(...filters: VectorFilter[]): VectorFilter;
  and(...filters: VectorFilter[]): VectorFilter;
}

/** Return type of the `vectorSearch` filter. */
export interface VectorFilter {
  readonly "~vector"?: never;
}

export interface VectorQuery<Fields, FilterFields extends string> {
  readonly vector: readonly number[];
  /** Maximum number of results. Default: 10. */
  readonly limit?: number;
  readonly filter?: (q: VectorFilterBuilder<Fields, FilterFields>) => VectorFilter;
}

/** A range of an aggregate. Reads take logarithmic time. A live query runs again when an entry in the range changes. */
export interface Aggregate<Document, Table extends string, SumField extends string> {
  /** Returns the number of documents. */
  count(): Promise<number>;
  /**
   * Returns the sum of a field; 0 without numbers.
   * @throws RangeError if the sum exceeds the range of numbers.
   */
  sum(field: SumField): Promise<number>;
  /** Returns the smallest number of a field, or `null`. */
  min(field: SumField): Promise<number | null>;
  /** Returns the largest number of a field, or `null`. */
  max(field: SumField): Promise<number | null>;
  /** Returns the document at a position in the order of the fields; -1 is the last one. `null` outside of the range. */
  at(position: number): Promise<Document | null>;
  /** Returns the position of a document, from 0; -1 if the range does not contain it. */
  indexOf(id: Id<Table>): Promise<number>;
}

/** Reads documents. Each call returns new objects; changing them does not change stored data. */
export interface DatabaseReader<Model extends DataModel> {
  /** Returns the document with this id, or `null`. */
  get<Table extends TableNames<Model>>(id: Id<Table>): Promise<DocumentOf<Model, Table> | null>;
  /** The same for an id that must belong to the table. Throws for an id of another table. */
  get<Table extends TableNames<Model>>(
    table: Table,
    id: Id<Table>,
  ): Promise<DocumentOf<Model, Table> | null>;
  query<Table extends TableNames<Model>>(table: Table): TableQuery<DocumentOf<Model, Table>, Model[Table]>;
  /** Returns an aggregate declared in the schema, or a range of it. */
  aggregate<Table extends TableNames<Model>, Name extends keyof Model[Table]["aggregates"] & string>(
    table: Table,
    name: Name,
    range?: (
      q: IndexRangeBuilder<DocumentOf<Model, Table>, Model[Table]["aggregates"][Name]["by"]>,
    ) => IndexRange,
  ): Aggregate<DocumentOf<Model, Table>, Table, Model[Table]["aggregates"][Name]["sum"]>;
  /** Returns the string as an id of the table, or `null` if it is not one. Does not check that the document exists. */
  normalizeId<Table extends TableNames<Model>>(table: Table, id: string): Id<Table> | null;
  /** Returns the documents nearest to a vector by cosine similarity, best first. */
  vectorSearch<Table extends TableNames<Model>, Name extends keyof Model[Table]["vectorIndexes"] & string>(
    table: Table,
    index: Name,
    query: VectorQuery<DocumentOf<Model, Table>, Model[Table]["vectorIndexes"][Name]["filterFields"]>,
  ): Promise<{ _id: Id<Table>; _score: number }[]>;
}

type Writable<Input> = Input extends unknown ? Input & Partial<SystemFields<string>> : never;

/** Optional fields may be `undefined`; `patch` removes them. */
type PatchOf<Input> = Input extends unknown ? { [Field in keyof Input]?: Input[Field] | undefined } : never;

/** Reads and writes documents in one transaction. Reads see earlier writes. */
export interface DatabaseWriter<Model extends DataModel> extends DatabaseReader<Readable<Model>> {
  /** Stores a new document and returns its id. */
  insert<Table extends TableNames<Model>>(
    table: Table,
    fields: Passed<Model[Table]["input"]>,
  ): Promise<Id<Table>>;
  /** Sets the given fields; `undefined` removes one. */
  patch<Table extends TableNames<Model>>(
    id: Id<Table>,
    fields: PatchOf<Passed<Model[Table]["input"]>>,
  ): Promise<void>;
  patch<Table extends TableNames<Model>>(
    table: Table,
    id: Id<Table>,
    fields: PatchOf<Passed<Model[Table]["input"]>>,
  ): Promise<void>;
  /** Replaces all fields. */
  replace<Table extends TableNames<Model>>(
    id: Id<Table>,
    fields: Writable<Passed<Model[Table]["input"]>>,
  ): Promise<void>;
  replace<Table extends TableNames<Model>>(
    table: Table,
    id: Id<Table>,
    fields: Writable<Passed<Model[Table]["input"]>>,
  ): Promise<void>;
  delete<Table extends TableNames<Model>>(id: Id<Table>): Promise<void>;
  delete<Table extends TableNames<Model>>(table: Table, id: Id<Table>): Promise<void>;
}
