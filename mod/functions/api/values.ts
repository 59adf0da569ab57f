/** Ids and documents as types: what a schema says about them. Types only. */
/** The id of a document of one table: a string that remembers its table. */
export type Id<Table extends string = string> = string & { readonly "~table": Table };

/** What every document has beside its own fields. */
export interface SystemFields<Table extends string> {
  readonly _id: Id<Table>;
  /** Milliseconds since the epoch, strictly increasing within a database. */
  readonly _creationTime: number;
}

/** Names of index fields in order. */
export type FieldNames = readonly string[];

/** What the types know of one table. */
export interface TableTypes {
  /** Fields as they are stored and read. */
  readonly fields: Record<string, unknown>;
  /** Fields as they may be written. */
  readonly input: Record<string, unknown>;
  readonly indexes: Record<string, FieldNames>;
  readonly searchIndexes: Record<string, { searchField: string; filterFields: string }>;
  readonly vectorIndexes: Record<string, { vectorField: string; filterFields: string }>;
}

/** Tables by name. */
export type DataModel = Record<string, TableTypes>;

/** A field of a document of which nothing is known. */
// deno-lint-ignore no-explicit-any -- functions made without a schema leave their documents unchecked, as in JavaScript
export type Unchecked = any;

/** The data model of functions made without `createFunctions(schema)`: any table, any field. */
export type AnyDataModel = Record<string, {
  readonly fields: Unchecked;
  readonly input: Unchecked;
  readonly indexes: Record<string, FieldNames>;
  readonly searchIndexes: Record<string, { searchField: string; filterFields: string }>;
  readonly vectorIndexes: Record<string, { vectorField: string; filterFields: string }>;
}>;

/** What became of a scheduled function. */
export type ScheduledFunctionState =
  | { kind: "pending" }
  | { kind: "inProgress" }
  | { kind: "success" }
  | { kind: "failed"; error: string }
  | { kind: "canceled" };

/** A scheduled function, kept for a week after its end. Times are milliseconds since the epoch. */
export interface ScheduledFunctionFields extends Record<string, unknown> {
  /** Path of the function. */
  name: string;
  args: Record<string, unknown>;
  /** When it is to run. */
  scheduledTime: number;
  /** When it ended or was canceled. */
  completedTime?: number | undefined;
  state: ScheduledFunctionState;
  functionKind: "mutation" | "action";
}

/** What the types know of the profile that an app keeps of its users. */
export interface ProfileTypes {
  /** Fields as they are stored and read. */
  readonly fields: Record<string, unknown>;
  /** Fields as they may be written. */
  readonly input: Record<string, unknown>;
  /** Indexes of `_users` on them. */
  readonly indexes: Record<string, FieldNames>;
}

/** What `defineProfile` makes, as far as types go. */
export interface ProfileMark {
  readonly "~profile": ProfileTypes;
}

/** Whoever vouches for a new user, and what is said of them. */
export interface ProfileSource {
  /** What the server's configuration calls the provider; `null` for any other way. */
  readonly provider: string | null;
  /** Who issued the claims; `null` when there are none. */
  readonly issuer: string | null;
  readonly claims: Readonly<Record<string, unknown>>;
}

/** The profile of an app that does not say what is in it. */
export interface UnknownProfile extends ProfileTypes {
  readonly indexes: Record<never, never>;
}

/** `_users` as app code sees it: of a user it may write the profile alone. */
export interface UsersTable<Profile extends ProfileTypes> {
  readonly fields: {
    /** Normalized; users of external issuers may have none. */
    email?: string | undefined;
    emailVerified: boolean;
    name?: string | undefined;
    /** What the app keeps of the user; missing for users that were there before the app had a profile. */
    profile?: Profile["fields"] | undefined;
  };
  readonly input: { profile?: Profile["input"] };
  readonly indexes: { readonly by_email: readonly ["email"] } & Profile["indexes"];
  readonly searchIndexes: Record<never, never>;
  readonly vectorIndexes: Record<never, never>;
}

/** Tables of the service that app code reads and, but for the profile of users, cannot write. */
export interface ReadableSystemTables {
  readonly _users: UsersTable<UnknownProfile>;
  readonly _scheduled_functions: {
    readonly fields: ScheduledFunctionFields;
    readonly input: never;
    readonly indexes: {
      readonly by_due: readonly ["state.kind", "functionKind", "scheduledTime"];
      readonly by_end: readonly ["completedTime"];
    };
    readonly searchIndexes: Record<never, never>;
    readonly vectorIndexes: Record<never, never>;
  };
}

/** A data model with the tables of the service that can be read beside it. */
export type Readable<Model extends DataModel> = string extends keyof Model ? Model
  : Model & Omit<ReadableSystemTables, keyof Model>;

/** Names of the tables of a data model. */
export type TableNames<Model extends DataModel> = keyof Model & string;

/** Applied to each member of a union alone, so that unions of documents stay unions. */
type WithSystemFields<Fields, Table extends string> = Fields extends unknown ? Fields & SystemFields<Table>
  : never;

/** A document of a table. */
export type DocumentOf<Model extends DataModel, Table extends TableNames<Model>> = WithSystemFields<
  Model[Table]["fields"],
  Table
>;

/** The value at a path such as `author.name`. */
export type FieldValue<Fields, Path extends string> = Fields extends unknown
  ? Path extends keyof Fields ? Fields[Path]
  : Path extends `${infer Head}.${infer Rest}`
    ? Head extends keyof Fields
      ? FieldValue<NonNullable<Fields[Head]>, Rest> | Extract<Fields[Head], undefined>
    : undefined
  : undefined
  : never;

/** Paths an index may name: the fields of any member of a union, or what lies below one. */
export type FieldPath<Fields> = Fields extends unknown
  ? (keyof Fields & string) | `${keyof Fields & string}.${string}` | "_creationTime"
  : never;
