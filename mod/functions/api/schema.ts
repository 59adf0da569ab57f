/** `defineSchema`, `defineTable` and `id` declare the tables in `schema.ts`. */
import { withHelp } from "../../explained.ts";
import { z } from "zod";
import { InvalidFieldsError } from "../../engine/errors.ts";
import type {
  AggregateDefinition,
  IndexDefinition,
  SchemaDefinition,
  SearchIndexDefinition,
  TableDefinition,
  Value,
  VectorIndexDefinition,
} from "../../engine/types.ts";
import {
  adminMutation,
  adminQuery,
  type FunctionBuilder,
  type FunctionBuilders,
  isZodSchema,
  type SystemFunctionBuilders,
  untypedAction,
  untypedInternalAction,
  untypedInternalMutation,
  untypedInternalQuery,
  untypedMutation,
  untypedQuery,
} from "./registration.ts";
import type { MutationCtx, QueryCtx } from "./context.ts";
import { zod } from "./current_zod.ts";
import { checkIndexFields } from "./index_fields.ts";
import type {
  AnyDataModel,
  DocumentOf,
  FieldNames,
  FieldPath,
  Id,
  ProfileMark,
  TableTypes,
  UsersTable,
} from "./values.ts";
import { markIdSchema, schemaFingerprint } from "./schema_fingerprint.ts";
import { issueText } from "./zod_issues.ts";

const { stringify } = JSON;

/** Argument of `defineTable`: a zod schema for each field, a zod object, or a union of zod objects. */
export type TableShape =
  | Readonly<Record<string, z.ZodType>>
  | z.ZodObject
  | z.ZodUnion
  | z.ZodDiscriminatedUnion;

type ShapeSchema<Shape extends TableShape> = Shape extends z.ZodType ? Shape
  : Shape extends Record<string, z.ZodType> ? z.ZodObject<Shape>
  : never;

/** An object type as inferred by zod. */
type Fields<T> = T extends Record<string, unknown> ? T : never;

/** Types of a table without indexes. */
interface NewTable<Shape extends TableShape> {
  readonly fields: Fields<z.output<ShapeSchema<Shape>>>;
  readonly input: Fields<z.input<ShapeSchema<Shape>>>;
  readonly indexes: Record<never, never>;
  readonly searchIndexes: Record<never, never>;
  readonly vectorIndexes: Record<never, never>;
  readonly aggregates: Record<never, never>;
}

type With<Table extends TableTypes, Key extends Exclude<keyof TableTypes, "fields" | "input">, Added> =
  & Omit<Table, Key>
  & { readonly [Name in Key]: Table[Key] & Added };

/** The zod schemas of tables, by their definitions in the engine. */
const tableSchemas = new WeakMap<TableDefinition, z.ZodType>();

/** Tables whose documents are deleted with a user, and the index that finds them. */
const cascades = new WeakMap<TableDefinition, string>();

/** Returns the zod schema of a table definition: a strict object, or a union of strict objects. */
export function tableSchema(definition: TableDefinition): z.ZodType {
  const schema = tableSchemas.get(definition);
  if (schema === undefined) {
    throw withHelp(new TypeError("The table definition must be created by defineTable"), "bad_schema");
  }
  return schema;
}

/** A table under construction: each call adds an index. */
export class TableBuilder<Table extends TableTypes = TableTypes> {
  declare readonly "~table": Table;
  readonly #schema: z.ZodType;
  readonly #indexes: IndexDefinition[] = [];
  readonly #searchIndexes: SearchIndexDefinition[] = [];
  readonly #vectorIndexes: VectorIndexDefinition[] = [];
  readonly #aggregates: AggregateDefinition[] = [];
  #deletedWithUser: string | null = null;

  constructor(shape: TableShape) {
    this.#schema = strictSchema(shape);
  }

  /** Adds an index on up to 16 fields; dots address nested fields. Rows with equal values are ordered by creation time. */
  index<Name extends string, const Fields extends readonly FieldPath<Table["fields"]>[]>(
    name: Name,
    fields: Fields,
  ): TableBuilder<With<Table, "indexes", Record<Name, Fields extends FieldNames ? Fields : never>>> {
    this.#claim(name);
    this.#indexes.push({ name, fields: [...fields] });
    return this as never;
  }

  /** Adds a full-text index on one text field. Searches can also filter by equality on other fields. */
  searchIndex<
    Name extends string,
    Field extends FieldPath<Table["fields"]>,
    FilterField extends FieldPath<Table["fields"]> = never,
  >(
    name: Name,
    options: { readonly searchField: Field; readonly filterFields?: readonly FilterField[] },
  ): TableBuilder<
    With<Table, "searchIndexes", Record<Name, { searchField: Field; filterFields: FilterField }>>
  > {
    this.#claim(name);
    this.#searchIndexes.push({
      name,
      searchField: options.searchField,
      filterFields: [...options.filterFields ?? []],
    });
    return this as never;
  }

  /** Adds an index on a field of `dimensions` numbers, for vector similarity search. */
  vectorIndex<
    Name extends string,
    Field extends FieldPath<Table["fields"]>,
    FilterField extends FieldPath<Table["fields"]> = never,
  >(
    name: Name,
    options: {
      readonly vectorField: Field;
      readonly dimensions: number;
      readonly filterFields?: readonly FilterField[];
    },
  ): TableBuilder<
    With<Table, "vectorIndexes", Record<Name, { vectorField: Field; filterFields: FilterField }>>
  > {
    this.#claim(name);
    this.#vectorIndexes.push({
      name,
      vectorField: options.vectorField,
      dimensions: options.dimensions,
      filterFields: [...options.filterFields ?? []],
    });
    return this as never;
  }

  /**
   * Adds an aggregate: counts, sums, smallest and largest values of documents, and positions in their order, for ranges of up to
   * 16 fields as in an index. Documents without a number in a field of `sum` are counted, and add nothing to that field.
   *
   * @example
   * ```ts
   * defineTable({ game: z.string(), points: z.number() })
   *   .aggregate("by_game", { by: ["game", "points"], sum: ["points"] })
   * ```
   */
  aggregate<
    Name extends string,
    const By extends readonly FieldPath<Table["fields"]>[],
    SumField extends FieldPath<Table["fields"]> = never,
  >(
    name: Name,
    options: { readonly by: By; readonly sum?: readonly SumField[] },
  ): TableBuilder<
    With<Table, "aggregates", Record<Name, { by: By extends FieldNames ? By : never; sum: SumField }>>
  > {
    this.#claim(name);
    this.#aggregates.push({ name, by: [...options.by], sum: [...options.sum ?? []] });
    return this as never;
  }

  /**
   * Deletes documents together with the user named by the first field of this index, when an administrator deletes the user.
   *
   * @example
   * ```ts
   * defineTable({ author: id("_users"), body: z.string() }).index("by_author", ["author"]).deleteWithUser("by_author")
   * ```
   */
  deleteWithUser(index: keyof Table["indexes"] & string): this {
    if (this.#deletedWithUser !== null) {
      throw new TypeError("deleteWithUser() can be called only once for a table");
    }
    if (!this.#indexes.some(({ name }) => name === index)) {
      throw new TypeError(`deleteWithUser("${index}") needs an index of the table, declared before it`);
    }
    this.#deletedWithUser = index;
    return this;
  }

  /** The index that finds a user's documents in a table; `null` if they are kept. */
  static deletedWithUser(definition: TableDefinition): string | null {
    return cascades.get(definition) ?? null;
  }

  /** Throws for an index on a field that no document of the table can have. */
  static check(name: string, table: TableBuilder): void {
    checkIndexFields(name, table.#schema, {
      indexes: table.#indexes,
      searchIndexes: table.#searchIndexes,
      vectorIndexes: table.#vectorIndexes,
      aggregates: table.#aggregates,
    });
  }

  /** Returns the same table with additional fields. */
  extended(fields: Readonly<Record<string, z.ZodType>>): TableBuilder {
    if (!(this.#schema instanceof z.ZodObject)) {
      throw new TypeError("Only a table with a single document type can be extended");
    }
    const table = new TableBuilder(this.#schema.extend(fields));
    table.#indexes.push(...this.#indexes);
    table.#searchIndexes.push(...this.#searchIndexes);
    table.#vectorIndexes.push(...this.#vectorIndexes);
    table.#aggregates.push(...this.#aggregates);
    table.#deletedWithUser = this.#deletedWithUser;
    return table;
  }

  /** The table definition for the engine. */
  static definition(table: TableBuilder): TableDefinition {
    const schema = table.#schema;
    const print = schemaFingerprint(schema);
    const definition: TableDefinition = {
      indexes: table.#indexes,
      searchIndexes: table.#searchIndexes,
      vectorIndexes: table.#vectorIndexes,
      aggregates: table.#aggregates,
      ...print,
      validate(fields) {
        const parsed = schema.safeParse(fields);
        if (!parsed.success) throw new InvalidFieldsError(issueText(parsed.error, ""));
        if (print.fingerprint === undefined) checkSettled(schema, { given: fields, made: parsed.data });
        return parsed.data as Record<string, Value>;
      },
    };
    tableSchemas.set(definition, schema);
    if (table.#deletedWithUser !== null) cascades.set(definition, table.#deletedWithUser);
    return definition;
  }

  #claim(name: string): void {
    const taken = [...this.#indexes, ...this.#searchIndexes, ...this.#vectorIndexes, ...this.#aggregates]
      .some((index) => index.name === name);
    if (taken) throw new TypeError(`Duplicate index "${name}"`);
    if (!/^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(name) || name === "by_id" || name === "by_creation_time") {
      throw new TypeError(
        `Invalid index name "${name}": names are a letter followed by up to 63 letters, digits or _; by_id and by_creation_time are built in`,
      );
    }
  }
}

/**
 * Validates what is stored once more. Stored documents are validated again at later starts and when a field is patched, so a
 * schema with transforms must be idempotent: trimming a string is, doubling a number is not.
 */
function checkSettled(
  schema: z.ZodType,
  { given, made }: { readonly given: unknown; readonly made: unknown },
): void {
  if (sameJson(given, made)) return;
  const again = schema.safeParse(made);
  if (again.success && sameJson(again.data, made)) return;
  const what = again.success ? "parsing it again changes it" : issueText(again.error, "");
  throw new InvalidFieldsError(
    `the parsed document does not match the schema: ${what}. Stored documents are validated again; ` +
      "transform values in the function that writes them",
  );
}

function sameJson(a: unknown, b: unknown): boolean {
  try {
    return stringify(a) === stringify(b);
  } catch {
    // Values that JSON cannot represent are refused when stored, with their path.
    return true;
  }
}

/** Refuses unknown fields, in each member of a union too. */
function strictSchema(shape: unknown): z.ZodType {
  if (shape instanceof z.ZodObject) return fieldsChecked(shape).strict();
  if (shape instanceof z.ZodDiscriminatedUnion || shape instanceof z.ZodUnion) {
    const options = shape.options.map((option: unknown) => strictSchema(option)) as [
      z.ZodType,
      ...z.ZodType[],
    ];
    // Checks on the whole object are not tied to a type.
    const checks = (shape.def.checks ?? []) as z.core.$ZodCheck<unknown>[];
    return zod.union(options).check(...checks);
  }
  if (isZodSchema(shape) || typeof shape !== "object" || shape === null) {
    throw new TypeError(
      "defineTable needs an object of zod schemas, a zod object, or a union of zod objects",
    );
  }
  for (const [field, schema] of Object.entries(shape)) {
    if (!isZodSchema(schema)) throw new TypeError(`Field "${field}" of the table is not a zod schema`);
  }
  return fieldsChecked(zod.strictObject(shape as Record<string, z.ZodType>));
}

function fieldsChecked(schema: z.ZodObject): z.ZodObject {
  for (const field of Object.keys(schema.shape)) {
    if (field.startsWith("_")) {
      throw new TypeError(`Invalid field "${field}": names that start with _ are reserved`);
    }
  }
  return schema;
}

/** Defines a table with these fields. `_id` and `_creationTime` are added. */
export function defineTable<const Shape extends TableShape>(shape: Shape): TableBuilder<NewTable<Shape>> {
  return new TableBuilder<NewTable<Shape>>(shape);
}

/** All tables of the app. */
export interface Schema<Tables extends Record<string, TableBuilder> = Record<string, TableBuilder>> {
  readonly tables: Tables;
}

/** The types of a schema's tables; with the type of a profile, also of `_users`. */
export type DataModelOf<S extends Schema, P extends ProfileMark | null = null> =
  & { [Table in keyof S["tables"] & string]: S["tables"][Table]["~table"] }
  & (P extends ProfileMark ? { readonly _users: UsersTable<P["~profile"]> } : unknown);

/**
 * The document type of a table.
 *
 * @example
 * ```ts
 * type Message = Doc<typeof schema, "messages">;
 * ```
 */
export type Doc<S extends Schema, Table extends keyof S["tables"] & string> = DocumentOf<
  DataModelOf<S>,
  Table
>;

/**
 * The data model of an app, from its `schema.ts`: that of the exported `query` or `mutation`, or else that of the schema. The
 * generated file `_generated.ts` derives `Doc`, `QueryCtx` and `MutationCtx` from it.
 */
export type AppDataModel<SchemaModule> = SchemaModule extends
  { readonly query: FunctionBuilder<"query", "public", QueryCtx<infer Model>> } ? Model
  : SchemaModule extends
    { readonly mutation: FunctionBuilder<"mutation", "public", MutationCtx<infer Model>> } ? Model
  : SchemaModule extends { readonly default: infer S extends Schema } ? DataModelOf<S>
  : AnyDataModel;

export class DefinedSchema<Tables extends Record<string, TableBuilder>> implements Schema<Tables> {
  readonly tables: Tables;

  constructor(tables: Tables) {
    this.tables = tables;
  }
}

/** Creates the default export of `schema.ts`. */
export function defineSchema<const Tables extends Record<string, TableBuilder>>(
  tables: Tables,
): Schema<Tables> {
  for (const [name, table] of Object.entries(tables)) {
    if (!/^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(name)) {
      throw new TypeError(
        `Invalid table name "${name}": names are a letter followed by up to 63 letters, digits or _`,
      );
    }
    if (!(table instanceof TableBuilder)) {
      throw withHelp(new TypeError(`Table "${name}" must be created by defineTable`), "bad_schema");
    }
    TableBuilder.check(name, table);
  }
  return new DefinedSchema(Object.freeze({ ...tables }));
}

/** Returns the schema for the engine, or `null` for a value not created by {@linkcode defineSchema}. */
export function schemaDefinition(schema: unknown): SchemaDefinition | null {
  if (!(schema instanceof DefinedSchema)) return null;
  const tables = Object.entries(schema.tables as Record<string, TableBuilder>);
  return new Map(tables.map(([name, table]) => [name, TableBuilder.definition(table)]));
}

/**
 * Returns builders with `ctx.db` typed by the schema and optionally by the profile of users:
 * `createFunctions<typeof schema, typeof profile>(schema)`. The functions are equivalent to those of the plain builders.
 *
 * @example
 * ```ts
 * // schema.ts
 * const schema = defineSchema({ messages: defineTable({ body: z.string() }) });
 * export default schema;
 * export const { query, mutation, action } = createFunctions(schema);
 * ```
 */
export function createFunctions<S extends Schema, P extends ProfileMark | null = null>(
  _schema: S,
): FunctionBuilders<DataModelOf<S, P>> {
  return {
    query: untypedQuery,
    mutation: untypedMutation,
    action: untypedAction,
    internalQuery: untypedInternalQuery,
    internalMutation: untypedInternalMutation,
    internalAction: untypedInternalAction,
  } as never;
}

/** Builders of the service with `ctx.db` typed by the schema. */
export function createSystemFunctions<S extends Schema>(_schema: S): SystemFunctionBuilders<DataModelOf<S>> {
  return {
    adminQuery,
    adminMutation,
    systemQuery: untypedInternalQuery,
    systemMutation: untypedInternalMutation,
  } as never;
}

/** Returns the table of an id; `null` if the string is not an id, `undefined` if its table is unknown. */
export type TableResolver = (id: string) => string | null | undefined;

let resolveTable: TableResolver = (id) => id === "" ? null : undefined;
const referencedTables = new Set<string>();

/** Sets the function with which `id()` looks up tables. Called by the isolate. */
export function setTableResolver(resolver: TableResolver): void {
  resolveTable = resolver;
}

/** Tables referenced by {@linkcode id}, checked against the schema after the app is loaded. */
export function tablesNamedByIds(): ReadonlySet<string> {
  return referencedTables;
}

/** Returns a zod schema for ids of one table. Does not check that the document exists. */
export function id<const Table extends string>(table: Table): z.ZodCustom<Id<Table>, Id<Table>> {
  if (typeof table !== "string" || table === "") {
    throw new TypeError('id() needs the name of a table: id("messages")');
  }
  referencedTables.add(table);
  const tableOf = (value: unknown) => typeof value === "string" ? resolveTable(value) : null;
  const schema = zod.custom<Id<Table>>(
    (value) => {
      const found = tableOf(value);
      return found === table || found === undefined;
    },
    {
      error: ({ input }) => {
        const expected = `Expected an id of table "${table}"`;
        if (input === null) {
          return `${expected}, received null${table === "_users" ? ": is the caller signed in?" : ""}`;
        }
        const found = tableOf(input) ?? null;
        return found === null ? expected : `${expected}, received one of table "${found}"`;
      },
    },
  );
  markIdSchema(schema, table);
  return schema;
}
