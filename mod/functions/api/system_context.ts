/** The `ctx` of functions of the service itself: that of the app's functions, and what looks at the whole. Types only. */
import type { Doc, TableSize } from "../../engine/types.ts";
import type { FunctionKind } from "../../protocol/function_reference.ts";
import type { Visibility } from "../../protocol/api_reference.ts";
import type { MutationCtx, QueryCtx } from "./context.ts";
import type { OrderedQuery } from "./database.ts";
import type { DataModel, ProfileSource } from "./values.ts";

/** A JSON Schema. Ids have `format: "id"` and name their table in `x-table`. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** What is known of a table. */
export interface TableFacts {
  readonly name: string;
  /** Whether it is the service's own. */
  readonly ofService: boolean;
  /** Of its documents, without `_id` and `_creationTime`. */
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
  /** The index by which documents go when the user they belong to is deleted; `null` when they stay. */
  readonly deletedWithUser: string | null;
}

/** What is known of a function. */
export interface FunctionFacts {
  readonly path: string;
  readonly kind: FunctionKind;
  readonly visibility: Visibility;
  readonly ofService: boolean;
  /** `null` when it takes anything. */
  readonly args: JsonSchema | null;
  /** `null` when its results are not checked. */
  readonly returns: JsonSchema | null;
}

/** What is wrong with one field. */
export interface FieldIssue {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

export interface WalkOptions {
  /** The `next` of the part before; `null` for the first one. */
  readonly after: string | null;
  readonly rowsMax: number;
  /** Ends the part when so much was read; a document begun is read whole. */
  readonly charsMax: number;
}

/** A part of a table. */
export interface Walk {
  readonly documents: Doc[];
  /** `null` when nothing follows. */
  readonly next: string | null;
}

/** Looks at the app and the database as a whole. */
export interface Inspector {
  tables(): TableFacts[];
  functions(): FunctionFacts[];
  /** Whether there is a function of this path. */
  has(path: string): boolean;
  /** What the profile of a new user begins with; `undefined` for an app that keeps none. */
  newProfile(source: ProfileSource): Record<string, unknown> | undefined;
  /** Where fields do not fit a table's schema; none when they do. */
  issues(table: string, fields: Readonly<Record<string, unknown>>): FieldIssue[];
  /** Some documents of a table, the oldest first: those behind a key, until there are enough of them or of their text. */
  walk(table: string, options: WalkOptions): Walk;
  /** How many documents a table has, counted up to `max`. Queries only. */
  count(table: string, max: number): number;
  /** How many rows a query on an index without filters has, counted up to `max`. Queries only. */
  countRows(query: OrderedQuery<unknown>, max: number): number;
  /** The cursor of such a query behind so many of its rows; `null` where there are fewer. Queries only. */
  cursorBehind(query: OrderedQuery<unknown>, rows: number): string | null;
  /** The cursor that stands so many of its rows before another one of it; `null` where there are fewer. Queries only. */
  cursorBefore(query: OrderedQuery<unknown>, cursor: string, rows: number): string | null;
  /** Looks at every page of the database; does not count as read. Queries only. */
  sizes(): TableSize[];
  /** Table and index of each key space of a read set, by key space. Queries only. */
  spaces(): Record<string, { readonly table: string; readonly index: string }>;
}

/** Stores documents that come from elsewhere. */
export interface Importer {
  /** Stores one document with the id and creation time it brings. Throws when it is there already, or does not fit. */
  store(table: string, document: Readonly<Record<string, unknown>>, mode: "insert" | "upsert"): void;
}

/** The scheduled function that a call goes back to. */
export interface Lineage {
  /** Id of the one that was scheduled from outside. */
  readonly root: string;
  /** How many scheduled functions stand between it and the call, the one that runs included. */
  readonly generation: number;
}

/** Knows to which scheduled function the call goes back. */
export interface LineageKeeper {
  /** `null` for calls that go back to none. */
  readonly current: Lineage | null;
  /** What is called from here on goes back to this one. */
  begin(lineage: Lineage): void;
  /** What is to be done when what the function does now is undone: with it, with a caller, or with the whole group. */
  onUndone(undo: () => void): void;
}

/** `ctx` of a query of the service. */
export interface SystemQueryCtx<Model extends DataModel> extends QueryCtx<Model> {
  readonly inspector: Inspector;
}

/** `ctx` of a mutation of the service. */
export interface SystemMutationCtx<Model extends DataModel> extends MutationCtx<Model> {
  readonly inspector: Inspector;
  readonly importer: Importer;
  readonly lineage: LineageKeeper;
}
