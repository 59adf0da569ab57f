/** Types of ids and documents, derived from a schema. */
/** The id of a document of one table: a string that remembers its table. */
export type Id<Table extends string = string> = string & { readonly "~table": Table };

/** System fields of every document. */
export interface SystemFields<Table extends string> {
  readonly _id: Id<Table>;
  /** Milliseconds since the epoch, strictly increasing within a database. */
  readonly _creationTime: number;
}

/** Names of index fields in order. */
export type FieldNames = readonly string[];

/** Types of one table. */
export interface TableTypes {
  /** Fields as stored and read. */
  readonly fields: Record<string, unknown>;
  /** Fields as written. */
  readonly input: Record<string, unknown>;
  readonly indexes: Record<string, FieldNames>;
  readonly searchIndexes: Record<string, { searchField: string; filterFields: string }>;
  readonly vectorIndexes: Record<string, { vectorField: string; filterFields: string }>;
  readonly aggregates: Record<string, { by: FieldNames; sum: string }>;
}

/** Tables by name. */
export type DataModel = Record<string, TableTypes>;

/** A field of a document of unknown type. */
// deno-lint-ignore no-explicit-any -- functions declared without a schema have unchecked documents, as in JavaScript
export type Unchecked = any;

/** The data model of functions declared without `createFunctions(schema)`: any table, any field. */
export type AnyDataModel = Record<string, {
  readonly fields: Unchecked;
  readonly input: Unchecked;
  readonly indexes: Record<string, FieldNames>;
  readonly searchIndexes: Record<string, { searchField: string; filterFields: string }>;
  readonly vectorIndexes: Record<string, { vectorField: string; filterFields: string }>;
  readonly aggregates: Record<string, { by: FieldNames; sum: string }>;
}>;

/** State of a scheduled function. */
export type ScheduledFunctionState =
  | { kind: "pending" }
  | { kind: "inProgress" }
  | { kind: "success" }
  | { kind: "failed"; error: string }
  | { kind: "canceled" };

/** A scheduled function, kept for a week after it has ended. Times are milliseconds since the epoch. */
export interface ScheduledFunctionFields extends Record<string, unknown> {
  /** Path of the function. */
  name: string;
  args: Record<string, unknown>;
  /** Scheduled time. */
  scheduledTime: number;
  /** When it ended or was canceled. */
  completedTime?: number | undefined;
  state: ScheduledFunctionState;
  functionKind: "mutation" | "action";
}

/** Types of the app's user profile. */
export interface ProfileTypes {
  /** Fields as stored and read. */
  readonly fields: Record<string, unknown>;
  /** Fields as written. */
  readonly input: Record<string, unknown>;
  /** Indexes of `_users` on profile fields. */
  readonly indexes: Record<string, FieldNames>;
}

/** Type of the result of `defineProfile`. */
export interface ProfileMark {
  readonly "~profile": ProfileTypes;
}

/** The source of a new user's identity, and its claims. */
export interface ProfileSource {
  /** Configured name of the provider; `null` for other methods. */
  readonly provider: string | null;
  /** Issuer of the claims; `null` if there are none. */
  readonly issuer: string | null;
  readonly claims: Readonly<Record<string, unknown>>;
}

/** The profile of an app that does not define one. */
export interface UnknownProfile extends ProfileTypes {
  readonly indexes: Record<never, never>;
}

/** `_users` as seen by app code, which can only write the profile. */
export interface UsersTable<Profile extends ProfileTypes> {
  readonly fields: {
    /** Normalized; users of external issuers may have none. */
    email?: string | undefined;
    emailVerified: boolean;
    name?: string | undefined;
    /** The app's profile; absent for users created before the app defined one. */
    profile?: Profile["fields"] | undefined;
  };
  readonly input: { profile?: Profile["input"] };
  readonly indexes: { readonly by_email: readonly ["email"] } & Profile["indexes"];
  readonly searchIndexes: Record<never, never>;
  readonly vectorIndexes: Record<never, never>;
  readonly aggregates: Record<never, never>;
}

/** System tables that app code can read but, except for user profiles, not write. */
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
    readonly aggregates: Record<never, never>;
  };
}

/** A data model extended with the readable system tables. */
export type Readable<Model extends DataModel> = string extends keyof Model ? Model
  : Model & Omit<ReadableSystemTables, keyof Model>;

/** Names of the tables of a data model. */
export type TableNames<Model extends DataModel> = keyof Model & string;

/** Distributes over unions, so that unions of documents stay unions. */
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

/** Paths that an index can name: fields of any union member, or nested fields. */
export type FieldPath<Fields> = Fields extends unknown
  ? (keyof Fields & string) | `${keyof Fields & string}.${string}` | "_creationTime"
  : never;
