/**
 * Converts the cells of a CSV file to documents according to the table's schema.
 *
 * A non-empty cell is interpreted as each type that its field allows, in this order, and the first interpretation accepted by
 * the field's schema is used:
 * 1. a number; if the field may also be a string, only in the format of exports (`42`, not `042` or `4.20`);
 * 2. `true` or `false`;
 * 3. an array or an object as JSON; any JSON if the field may be anything (`z.any()`, `z.unknown()`);
 * 4. the string itself.
 *
 * An empty cell is, in this order: `null`, omitted if the field is optional or has a default, the empty string; otherwise it is
 * omitted, and validation reports a missing field. If no interpretation is accepted, validation reports the first one, or the
 * string.
 *
 * If the table is a union of objects, each is tried with the whole row.
 */
import { z } from "zod";

/** Value types of a schema that determine how a cell is interpreted. */
type Kind = "missing" | "null" | "number" | "boolean" | "json" | "text" | "any";

/** Maximum number of schemas visited per field; more complex ones count as "any". */
const SCHEMAS_MAX = 1_000;

const systemColumns: ReadonlySet<string> = new Set(["_id", "_creationTime"]);

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

type Schema = z.core.$ZodType;
/** A Zod definition of any type with the properties used here. */
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

/** A column of one of the table's object types. */
interface Column {
  readonly name: string;
  /** `null` if this object type has no such field. */
  readonly field: Schema | null;
  readonly kinds: ReadonlySet<Kind>;
}

/** The file's columns do not match the table. */
export class ColumnsError extends Error {
  override readonly name = "ColumnsError";
}

/** Converts rows of cells to documents. */
export class CellReader {
  readonly #members: readonly { readonly schema: z.ZodObject; readonly columns: readonly Column[] }[];
  readonly #columns: readonly string[];

  /** Throws a {@linkcode ColumnsError} for unknown or duplicate columns. */
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
    if (twice.length > 0) throw new ColumnsError(`Duplicate columns in the header: ${quoted(twice)}`);
    this.#columns = columns;
    this.#members = members.map((member) => ({
      schema: member,
      columns: columns.map((name) => columnOf(member, name)),
    }));
  }

  /** Converts a row. Throws a `TypeError` if the number of cells differs from the number of columns. */
  document(cells: readonly string[]): Record<string, unknown> {
    if (cells.length !== this.#columns.length) {
      throw new TypeError(`The row has ${cells.length} cells, but the header has ${this.#columns.length}`);
    }
    let first: Record<string, unknown> | null = null;
    for (const { schema, columns } of this.#members) {
      const document: Record<string, unknown> = {};
      columns.forEach((column, index) => {
        const value = cellValue(column, cells[index] ?? "");
        // Defined this way, `__proto__` is an ordinary property.
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

/** Object types of a table. */
function membersOf(schema: Schema): z.ZodObject[] {
  if (schema instanceof z.ZodObject) return [schema];
  const { options = [] } = schema._zod.def as Definition;
  return options.flatMap(membersOf);
}

/** `undefined` omits the field. */
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

/** `undefined` if it is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Adds the value types accepted by a schema to `kinds`. `left`: number of schemas that may still be visited. */
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
