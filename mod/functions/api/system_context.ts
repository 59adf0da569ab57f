/** Types of the `ctx` of system functions: the app's `ctx`, and access to the whole database. */
import type { Doc, TableSize } from "../../engine/types.ts";
import type { FunctionKind } from "../../protocol/function_reference.ts";
import type { Visibility } from "../../protocol/api_reference.ts";
import type { MutationCtx, QueryCtx } from "./context.ts";
import type { OrderedQuery } from "./database.ts";
import type { DataModel, ProfileSource } from "./values.ts";

/** A JSON Schema. Ids have `format: "id"` and their table in `x-table`. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Description of a table. */
export interface TableFacts {
  readonly name: string;
  /** Whether it is a system table. */
  readonly ofService: boolean;
  /** Schema of its documents, without `_id` and `_creationTime`. */
  readonly schema: JsonSchema;
  readonly indexes: readonly { readonly name: string; readonly fields: readonly string[] }[];
  readonly searchIndexes: readonly {
    readonly name: string;
    readonly searchField: string;
    readonly filterFields: readonly string[];
  }[];
  readonly vectorIndexes: readonly {
    readonly name: string;
    readonly vectorField: string;
    readonly dimensions: number;
    readonly filterFields: readonly string[];
  }[];
  readonly aggregates: readonly {
    readonly name: string;
    readonly by: readonly string[];
    readonly sum: readonly string[];
  }[];
  /** The index that finds documents to delete with a user; `null` if they are kept. */
  readonly deletedWithUser: string | null;
}

/** Description of a function. */
export interface FunctionFacts {
  readonly path: string;
  readonly kind: FunctionKind;
  readonly visibility: Visibility;
  readonly ofService: boolean;
  /** Its doc comment. `null` if it has none, or was not loaded from a bundle. */
  readonly doc: string | null;
  /** `null` if it accepts any arguments. */
  readonly args: JsonSchema | null;
  /** `null` if its results are not validated. */
  readonly returns: JsonSchema | null;
}

/** A validation error of one field. */
export interface FieldIssue {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

export interface WalkOptions {
  /** The `next` of the previous batch; `null` for the first one. */
  readonly after: string | null;
  readonly rowsMax: number;
  /** Ends the batch after this many characters; a document is never split. */
  readonly charsMax: number;
}

/** A batch of documents of a table. */
export interface Walk {
  readonly documents: Doc[];
  /** `null` after the last batch. */
  readonly next: string | null;
}

/** Inspects the app and the whole database. */
export interface Inspector {
  tables(): TableFacts[];
  /** Returns the stored tables that the app's schema lacks, which queries can read. Empty in mutations. */
  orphanedTables(): TableFacts[];
  functions(): FunctionFacts[];
  /** Whether a function with this path exists. */
  has(path: string): boolean;
  /** Returns the initial profile of a new user; `undefined` for an app without profiles. */
  newProfile(source: ProfileSource): Record<string, unknown> | undefined;
  /** Returns the fields that do not match a table's schema. */
  issues(table: string, fields: Readonly<Record<string, unknown>>): FieldIssue[];
  /** Returns documents of a table after a key, oldest first, up to a number of documents or characters. */
  walk(table: string, options: WalkOptions): Walk;
  /** Counts the documents of a table up to `max`. Queries only. */
  count(table: string, max: number): number;
  /** Counts the rows of an index query without filters up to `max`. Queries only. */
  countRows(query: OrderedQuery<unknown>, max: number): number;
  /** Returns the cursor after this many rows of such a query; `null` if there are fewer. Queries only. */
  cursorBehind(query: OrderedQuery<unknown>, rows: number): string | null;
  /** Returns the cursor this many rows before another cursor; `null` if there are fewer. Queries only. */
  cursorBefore(query: OrderedQuery<unknown>, cursor: string, rows: number): string | null;
  /** Checks every page of the database; does not count as a read. Queries only. */
  sizes(): TableSize[];
  /** Returns the table and index of each key space of a read set. Queries only. */
  spaces(): Record<string, { readonly table: string; readonly index: string }>;
}

/** Stores imported documents. */
export interface Importer {
  /** Stores a document with its own id and creation time. Throws if it exists or does not match the schema. */
  store(table: string, document: Readonly<Record<string, unknown>>, mode: "insert" | "upsert"): void;
}

/** The scheduled function that caused a call. */
export interface Lineage {
  /** Id of the function that was scheduled externally. */
  readonly root: string;
  /** Number of scheduled functions between it and the call, including the running one. */
  readonly generation: number;
}

/** Access to the scheduled function that caused the call. */
export interface LineageKeeper {
  /** `null` if no scheduled function caused the call. */
  readonly current: Lineage | null;
  /** Attributes further calls to this scheduled function. */
  begin(lineage: Lineage): void;
  /** Registers a callback for the rollback of this function, its caller or the whole group. */
  onUndone(undo: () => void): void;
}

/** `ctx` of a system query. */
export interface SystemQueryCtx<Model extends DataModel> extends QueryCtx<Model> {
  readonly inspector: Inspector;
}

/** `ctx` of a system mutation. */
export interface SystemMutationCtx<Model extends DataModel> extends MutationCtx<Model> {
  readonly inspector: Inspector;
  readonly importer: Importer;
  readonly lineage: LineageKeeper;
}
