/** `ctx.db` as authors see it: reading, writing and the queries on one table. Types only. */
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

/** Rows come in the order of their index: first to last, or last to first. */
export type Order = "asc" | "desc";

/** Indexes every table has. */
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

/** What follows a lower bound: at most an upper bound on the same field. */
export interface UpperBoundBuilder<Fields, Field extends string> extends IndexRange {
  lt(field: Field, value: FieldValue<Fields, Field>): IndexRange;
  lte(field: Field, value: FieldValue<Fields, Field>): IndexRange;
}

/** What follows an upper bound: at most a lower bound on the same field. */
export interface LowerBoundBuilder<Fields, Field extends string> extends IndexRange {
  gt(field: Field, value: FieldValue<Fields, Field>): IndexRange;
  gte(field: Field, value: FieldValue<Fields, Field>): IndexRange;
}

/** A range of an index: fixed values for its first fields in order, then at most one range on the next field. */
export interface IndexRangeBuilder<Fields, Names extends FieldNames> extends IndexRange {
  eq(field: Head<Names>, value: FieldValue<Fields, Head<Names>>): IndexRangeBuilder<Fields, Tail<Names>>;
  gt(field: Head<Names>, value: FieldValue<Fields, Head<Names>>): UpperBoundBuilder<Fields, Head<Names>>;
  gte(field: Head<Names>, value: FieldValue<Fields, Head<Names>>): UpperBoundBuilder<Fields, Head<Names>>;
  lt(field: Head<Names>, value: FieldValue<Fields, Head<Names>>): LowerBoundBuilder<Fields, Head<Names>>;
  lte(field: Head<Names>, value: FieldValue<Fields, Head<Names>>): LowerBoundBuilder<Fields, Head<Names>>;
}

/** What `withIndex` wants back. */
export interface IndexRange {
  readonly "~range"?: never;
}

/** What `withSearchIndex` wants back. */
export interface SearchFilter {
  readonly "~search"?: never;
}

export interface SearchFilterBuilder<Fields, SearchField extends string, FilterFields extends string> {
  /** Documents whose text has these words, the last one also as a prefix; best first. */
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

/** Builds the condition of `filter`; values compare in the order of indexes. */
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
  /** `null` for the first page, then the `continueCursor` of the page before. */
  readonly cursor: string | null;
  /** Rows wanted; a page may have fewer. */
  readonly numItems: number;
  /**
   * Ends the page where another page began (`continueCursor` of its last run) whatever was added or removed since, so
   * that pages shown together neither lose nor repeat a row. `numItems` does not count then.
   */
  readonly endCursor?: string | null | undefined;
  /** Ends the page early when a filter lets few rows pass. */
  readonly maximumRowsRead?: number | undefined;
  /** Ends the page behind the document with which so many characters are read, also in front of an `endCursor`. */
  readonly maximumCharsRead?: number | undefined;
}

export interface PaginationResult<Document> {
  readonly page: Document[];
  /** Whether the page reaches the end. */
  readonly isDone: boolean;
  readonly continueCursor: string;
  /**
   * Where to cut a page with an `endCursor` that has grown beyond twice `numItems`: behind its first `numItems` rows.
   * A page from `cursor` to `splitCursor` and one from there to `endCursor` show the same rows.
   */
  readonly splitCursor?: string;
}

/** A query whose rows and order are chosen: it can be filtered and run. */
export interface OrderedQuery<Document> extends AsyncIterable<Document> {
  /**
   * Keeps the rows for which the condition holds: an expression such as `(q) => q.eq(q.field("done"), false)`, or a
   * predicate on the document such as `(row) => !row.done`. Rows are read before they are dropped: an index is faster.
   */
  filter(
    condition: (row: Document & FilterBuilder<Document>) => boolean | Expression<boolean>,
  ): this;
  /** All rows. */
  collect(): Promise<Document[]>;
  /** The first `count` rows. */
  take(count: number): Promise<Document[]>;
  /** The first row, or `null`. */
  first(): Promise<Document | null>;
  /** The only row, or `null` if there is none. Throws when there are two. */
  unique(): Promise<Document | null>;
  paginate(options: PaginationOptions): Promise<PaginationResult<Document>>;
}

/** A query whose rows are chosen. */
export interface UnorderedQuery<Document> extends OrderedQuery<Document> {
  order(order: Order): OrderedQuery<Document>;
}

/** A query on a table: all rows by creation time unless an index says otherwise. */
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

/** What the filter of `vectorSearch` gives back. */
export interface VectorFilter {
  readonly "~vector"?: never;
}

export interface VectorQuery<Fields, FilterFields extends string> {
  readonly vector: readonly number[];
  /** At most this many results; 10 unless told. */
  readonly limit?: number;
  readonly filter?: (q: VectorFilterBuilder<Fields, FilterFields>) => VectorFilter;
}

/** Reading. Documents are fresh objects: changing one changes nothing stored. */
export interface DatabaseReader<Model extends DataModel> {
  /** The document with this id, or `null`. */
  get<Table extends TableNames<Model>>(id: Id<Table>): Promise<DocumentOf<Model, Table> | null>;
  /** The same, checked against the table. Throws for an id of another table. */
  get<Table extends TableNames<Model>>(
    table: Table,
    id: Id<Table>,
  ): Promise<DocumentOf<Model, Table> | null>;
  query<Table extends TableNames<Model>>(table: Table): TableQuery<DocumentOf<Model, Table>, Model[Table]>;
  /** The text as an id of the table, or `null` if it is none. Does not look whether the document exists. */
  normalizeId<Table extends TableNames<Model>>(table: Table, id: string): Id<Table> | null;
  /** The documents nearest to a vector by cosine, best first. */
  vectorSearch<Table extends TableNames<Model>, Name extends keyof Model[Table]["vectorIndexes"] & string>(
    table: Table,
    index: Name,
    query: VectorQuery<DocumentOf<Model, Table>, Model[Table]["vectorIndexes"][Name]["filterFields"]>,
  ): Promise<{ _id: Id<Table>; _score: number }[]>;
}

type Writable<Input> = Input extends unknown ? Input & Partial<SystemFields<string>> : never;

/** Optional fields may also be given as `undefined`: `patch` removes them. */
type PatchOf<Input> = Input extends unknown ? { [Field in keyof Input]?: Input[Field] | undefined } : never;

/** Reading and writing, all in one transaction. Reads see the writes before them. */
export interface DatabaseWriter<Model extends DataModel> extends DatabaseReader<Readable<Model>> {
  /** Stores a new document and gives back its id. */
  insert<Table extends TableNames<Model>>(table: Table, fields: Model[Table]["input"]): Promise<Id<Table>>;
  /** Sets the named fields; `undefined` removes one. */
  patch<Table extends TableNames<Model>>(
    id: Id<Table>,
    fields: PatchOf<Model[Table]["input"]>,
  ): Promise<void>;
  patch<Table extends TableNames<Model>>(
    table: Table,
    id: Id<Table>,
    fields: PatchOf<Model[Table]["input"]>,
  ): Promise<void>;
  /** Replaces all fields. */
  replace<Table extends TableNames<Model>>(
    id: Id<Table>,
    fields: Writable<Model[Table]["input"]>,
  ): Promise<void>;
  replace<Table extends TableNames<Model>>(
    table: Table,
    id: Id<Table>,
    fields: Writable<Model[Table]["input"]>,
  ): Promise<void>;
  delete<Table extends TableNames<Model>>(id: Id<Table>): Promise<void>;
  delete<Table extends TableNames<Model>>(table: Table, id: Id<Table>): Promise<void>;
}
