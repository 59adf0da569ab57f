/**
 * Makes documents of the cells of a CSV file: what a cell means depends on the table's schema.
 *
 * A cell that is not empty is read as each of these that its field may hold, in this order, and the first reading that the
 * field's schema accepts is taken:
 * 1. a number: where the field may also be a text, only one written as numbers are exported (`42`, not `042` or `4.20`);
 * 2. `true` or `false`;
 * 3. an array or an object, as JSON; where the field may be anything (`z.any()`, `z.unknown()`), any JSON;
 * 4. the text as it is.
 *
 * An empty cell is, in this order: `null`, left out where the field is optional or has a default, the empty text; else it
 * is left out, and the table says that something is missing. When no reading is accepted the table is given the first one,
 * or the text, and says what is wrong with it.
 *
 * In a table that is a union of objects, each of them is tried in turn with the whole row.
 */
import { z } from "zod";

/** What a schema may accept, as far as it decides how a cell is read. */
type Kind = "missing" | "null" | "number" | "boolean" | "json" | "text" | "any";

/** Schemas looked at for one field; what is more entangled may be anything. */
const SCHEMAS_MAX = 1_000;

/** Columns of the service, in every table. */
const systemColumns: ReadonlySet<string> = new Set(["_id", "_creationTime"]);

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

type Schema = z.core.$ZodType;
/** A definition of any type, with what those read here may have. */
type Definition = z.core.$ZodTypeDef & {
  readonly options?: readonly Schema[];
  readonly innerType?: Schema;
  readonly left?: Schema;
  readonly right?: Schema;
  readonly in?: Schema;
  readonly getter?: () => Schema;
  readonly values?: readonly unknown[];
  readonly entries?: Readonly<Record<string, unknown>>;
};

/** One column of one kind of object in the table. */
interface Column {
  readonly name: string;
  /** `null` for a column that objects of this kind do not have. */
  readonly field: Schema | null;
  readonly kinds: ReadonlySet<Kind>;
}

/** A file's columns do not fit the table. */
export class ColumnsError extends Error {
  override readonly name = "ColumnsError";
}

/** Makes documents of rows of cells. */
export class CellReader {
  readonly #members: readonly { readonly schema: z.ZodObject; readonly columns: readonly Column[] }[];
  readonly #columns: readonly string[];

  /** Throws a {@linkcode ColumnsError} for columns that the table does not have, or that stand there twice. */
  constructor(table: string, schema: z.ZodType, columns: readonly string[]) {
    const members = membersOf(schema);
    const known = new Set(members.flatMap(({ shape }) => Object.keys(shape)));
    const unknown = columns.filter((name) => !known.has(name) && !systemColumns.has(name));
    if (unknown.length > 0) {
      throw new ColumnsError(
        `Table "${table}" has no ${unknown.length === 1 ? "field" : "fields"} ${
          quoted(unknown)
        }; its fields are ${quoted([...known])}`,
      );
    }
    const twice = columns.filter((name, index) => columns.indexOf(name) !== index);
    if (twice.length > 0) throw new ColumnsError(`The header names ${quoted(twice)} twice`);
    this.#columns = columns;
    this.#members = members.map((member) => ({
      schema: member,
      columns: columns.map((name) => columnOf(member, name)),
    }));
  }

  /** The document of a row. Throws a `TypeError` for a row with more or fewer cells than there are columns. */
  document(cells: readonly string[]): Record<string, unknown> {
    if (cells.length !== this.#columns.length) {
      throw new TypeError(`The row has ${cells.length} cells and the header ${this.#columns.length}`);
    }
    let first: Record<string, unknown> | null = null;
    for (const { schema, columns } of this.#members) {
      const document: Record<string, unknown> = {};
      columns.forEach((column, index) => {
        const value = cellValue(column, cells[index] ?? "");
        // Set like this, `__proto__` is a name like any other.
        if (value !== undefined) {
          Object.defineProperty(document, column.name, {
            value,
            enumerable: true,
            configurable: true,
            writable: true,
          });
        }
      });
      if (this.#members.length === 1) return document;
      const { _id, _creationTime, ...fields } = document;
      if (schema.safeParse(fields).success) return document;
      first ??= document;
    }
    return first ?? {};
  }
}

function columnOf(member: z.ZodObject, name: string): Column {
  if (name === "_id") return { name, field: null, kinds: new Set(["missing", "text"]) };
  if (name === "_creationTime") return { name, field: null, kinds: new Set(["missing", "number"]) };
  const field = Object.hasOwn(member.shape, name) ? member.shape[name] : undefined;
  if (field === undefined) return { name, field: null, kinds: new Set(["missing"]) };
  const kinds = new Set<Kind>();
  collectKinds(field, kinds, { left: SCHEMAS_MAX });
  return { name, field, kinds };
}

/** The kinds of objects in a table. */
function membersOf(schema: Schema): z.ZodObject[] {
  if (schema instanceof z.ZodObject) return [schema];
  const { options = [] } = schema._zod.def as Definition;
  return options.flatMap(membersOf);
}

/** `undefined` leaves the field out. */
function cellValue({ field, kinds }: Column, cell: string): unknown {
  const readings = cell === "" ? emptyReadings(kinds) : fullReadings(kinds, cell);
  const accepted = readings.length > 1 && field !== null
    ? readings.findIndex((reading) => accepts(field, reading))
    : 0;
  if (readings.length > 0) return readings[Math.max(accepted, 0)];
  return cell === "" ? undefined : cell;
}

function accepts(schema: Schema, value: unknown): boolean {
  return z.core.safeParse(schema, value).success;
}

function emptyReadings(kinds: ReadonlySet<Kind>): unknown[] {
  const readings: unknown[] = [];
  if (kinds.has("null") || kinds.has("any")) readings.push(null);
  if (kinds.has("missing")) readings.push(undefined);
  if (kinds.has("text") || kinds.has("any")) readings.push("");
  return readings;
}

function fullReadings(kinds: ReadonlySet<Kind>, cell: string): unknown[] {
  const readings: unknown[] = [];
  const text = kinds.has("text") || kinds.has("any");
  const trimmed = cell.trim();
  if (kinds.has("number") && NUMBER.test(trimmed) && (!text || String(Number(cell)) === cell)) {
    readings.push(Number(trimmed));
  }
  const word = trimmed.toLowerCase();
  if (kinds.has("boolean") && (word === "true" || word === "false")) readings.push(word === "true");
  if (kinds.has("json") || kinds.has("any")) {
    const value = parsed(cell);
    if (value !== undefined && (kinds.has("any") || (typeof value === "object" && value !== null))) {
      readings.push(value);
    }
  }
  if (text) readings.push(cell);
  return readings;
}

/** `undefined` for what is no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Adds the kinds of values that a schema accepts to `kinds`. `left`: how many more schemas may be looked at. */
function collectKinds(schema: Schema, kinds: Set<Kind>, budget: { left: number }): void {
  const def = schema._zod.def as Definition;
  const within = (inner: Schema | undefined) => {
    if (inner === undefined || --budget.left < 0) kinds.add("any");
    else collectKinds(inner, kinds, budget);
  };
  switch (def.type) {
    case "string":
    case "template_literal":
      kinds.add("text");
      return;
    case "number":
    case "int":
      kinds.add("number");
      return;
    case "boolean":
    case "null":
      kinds.add(def.type);
      return;
    case "undefined":
    case "void":
      kinds.add("missing");
      return;
    case "array":
    case "tuple":
    case "object":
    case "record":
      kinds.add("json");
      return;
    case "literal":
      for (const value of def.values ?? []) kinds.add(kindOf(value));
      return;
    case "enum":
      for (const value of Object.values(def.entries ?? {})) kinds.add(kindOf(value));
      return;
    case "optional":
    case "default":
    case "prefault":
      kinds.add("missing");
      within(def.innerType);
      return;
    case "nullable":
      kinds.add("null");
      within(def.innerType);
      return;
    case "nonoptional":
    case "readonly":
    case "catch":
      within(def.innerType);
      return;
    case "union":
      for (const option of def.options ?? []) within(option);
      return;
    case "intersection":
      within(def.left);
      within(def.right);
      return;
    case "pipe":
      within(def.in);
      return;
    case "lazy":
      within(def.getter?.());
      return;
    default:
      kinds.add("any");
  }
}

function kindOf(value: unknown): Kind {
  if (value === null) return "null";
  if (value === undefined) return "missing";
  switch (typeof value) {
    case "number":
    case "boolean":
      return typeof value as "number" | "boolean";
    case "string":
      return "text";
    default:
      return "any";
  }
}

function quoted(names: readonly string[]): string {
  const shown = names.slice(0, 20).map((name) => JSON.stringify(name)).join(", ");
  return names.length > 20 ? `${shown} and ${names.length - 20} more` : shown;
}
