/** Stored documents: access to values by path, and the system fields `_id` and `_creationTime`. */
import { EngineError } from "../errors.ts";
import { engineLimits } from "../limits.ts";
import type { Doc, Value } from "../types.ts";

/** An immutable parsed document. */
export interface StoredFields {
  readonly _id: string;
  readonly _creationTime: number;
  readonly [field: string]: Value;
}

/** Field names; the dots in a definition (`author.name`) separate them. */
export type Path = readonly string[];

export function pathOf(field: string): Path {
  return field.split(".");
}

const { hasOwn } = Object;

/** Returns the value at a path, or `undefined`. Paths lead into objects, not into arrays. */
export function valueAt(doc: StoredFields, path: Path): Value | undefined {
  let value: unknown = doc;
  for (const name of path) {
    if (typeof value !== "object" || value === null || Array.isArray(value) || !hasOwn(value, name)) {
      return undefined;
    }
    value = (value as Record<string, unknown>)[name];
  }
  // Everything inside a stored document is a value.
  return value as Value | undefined;
}

export function fieldsOf(doc: StoredFields): Record<string, Value> {
  const { _id, _creationTime, ...fields } = doc;
  return fields;
}

/** `ORDER BY` terms for an SQLite table of documents named `d`. */
export const CREATION_ORDER_SQL = "json_extract(d.doc, '$._creationTime'), d.id";

const SYSTEM_FIELDS = ["_id", "_creationTime"] as const;

/** Throws unless the fields of a document are an object. */
export function checkFields(fields: unknown): asserts fields is Record<string, unknown> {
  if (typeof fields === "object" && fields !== null && !Array.isArray(fields)) return;
  throw new EngineError("not_storable", "Cannot store this document: its fields must be a plain object");
}

/** Throws if the fields of a new document include a system field. */
export function checkNewFields(fields: unknown): asserts fields is Record<string, unknown> {
  checkFields(fields);
  for (const name of SYSTEM_FIELDS) {
    if (Object.hasOwn(fields, name)) {
      throw new EngineError("not_storable", `Cannot store field "${name}": the service sets it on insert`);
    }
  }
}

/** Removes system fields. Throws if their values differ from the document's. */
export function withoutSystemFields(
  doc: StoredFields,
  fields: Record<string, unknown>,
): Record<string, unknown> {
  checkFields(fields);
  for (const name of SYSTEM_FIELDS) {
    if (Object.hasOwn(fields, name) && fields[name] !== doc[name]) {
      throw new EngineError("not_storable", `Cannot change field "${name}" of a document`);
    }
  }
  const { _id, _creationTime, ...others } = fields;
  return others;
}

export interface ImportedDocument {
  readonly id: string;
  readonly creationTime: number;
  readonly fields: Record<string, unknown>;
}

/** Returns whether a value is a finite creation time in the valid range. */
export function isCreationTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= engineLimits.creationTimeMax;
}

/** Splits a document to import. Throws an `EngineError` for a bad id or time, or a time after `until`. */
export function importedDocument(
  document: unknown,
  { until = engineLimits.creationTimeMax }: { readonly until?: number } = {},
): ImportedDocument {
  checkFields(document);
  const { _id, _creationTime, ...fields } = document;
  if (typeof _id !== "string") {
    throw new EngineError("not_storable", "Cannot import this document: its _id must be a text");
  }
  if (typeof _creationTime !== "number" || !Number.isFinite(_creationTime)) {
    throw new EngineError(
      "not_storable",
      `Cannot import document "${_id}": its _creationTime must be a number, in milliseconds since the epoch`,
    );
  }
  if (!(_creationTime >= 0 && _creationTime <= Math.min(until, engineLimits.creationTimeMax))) {
    throw new EngineError(
      "not_storable",
      `Cannot import document "${_id}": its _creationTime ${_creationTime} must lie between 1970 and ` +
        (until < engineLimits.creationTimeMax ? "a day from now" : "2248"),
    );
  }
  return { id: _id, creationTime: _creationTime, fields };
}

/** Parses a document of a commit. Throws an `EngineError` unless it has this id. */
export function parseDocument(id: string, text: string): Doc & StoredFields {
  let doc: Partial<Doc> | null;
  try {
    doc = JSON.parse(text);
  } catch (cause) {
    throw new EngineError("bad_entry", `Cannot apply the change of document "${id}": it is not JSON`, {
      cause,
    });
  }
  if (doc?._id !== id || !isCreationTime(doc._creationTime)) {
    throw new EngineError("bad_entry", `Cannot apply the change of document "${id}": it is another document`);
  }
  return doc as Doc & StoredFields;
}
