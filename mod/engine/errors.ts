/** Errors of the engine. Messages say what to do. */
import { adviceText, type Difference, differenceText } from "./documents/schema_difference.ts";

/**
 * Codes of an {@linkcode EngineError}:
 * - `unknown_table`, `unknown_index`, `bad_bounds`, `bad_search`: the call names or asks for what is not there;
 * - `missing_document`: a write to a document that does not exist;
 * - `not_storable`: a value that documents cannot hold;
 * - `bad_entry`: a commit entry that does not belong to the database;
 * - `limit`: the call used more than a limit allows;
 * - `ended`: a view was used after its run had ended;
 * - `bad_schema`: the schema itself is wrong;
 * - `unusable_database`: the file is damaged, foreign, or written by a newer version;
 * - `failed_group`: an earlier write of the group failed in SQLite, so the group can only be rolled back.
 */
export type EngineErrorCode =
  | "unknown_table"
  | "unknown_index"
  | "bad_bounds"
  | "bad_search"
  | "missing_document"
  | "not_storable"
  | "bad_entry"
  | "limit"
  | "ended"
  | "bad_schema"
  | "unusable_database"
  | "failed_group";

/** An expected error, with a message for the app's author. */
export class EngineError extends Error {
  readonly code: EngineErrorCode;

  constructor(code: EngineErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "EngineError";
    this.code = code;
  }
}

/** A database file that is damaged, foreign, or of a newer version. */
export class UnusableDatabaseError extends EngineError {
  /** The reason without path and advice. */
  readonly reason: string;

  constructor(
    path: string,
    options: { readonly reason: string; readonly advice?: string; readonly cause?: unknown },
  ) {
    const { reason, advice, cause } = options;
    super(
      "unusable_database",
      `Cannot open "${path}": ${reason}${advice === undefined ? "" : `; ${advice}`}`,
      {
        cause,
      },
    );
    this.reason = reason;
  }
}

function unfitText(table: string, id: string, { reason }: { readonly reason: string }): string {
  return `document "${id}" of table "${table}" does not fit it: ${reason}. Make a new field .optional(), then fill it with ` +
    `"npx syncline migrate <file>:<function> --table ${table}" (/_/docs/data_migrations), or use an empty data folder`;
}

function changedText(
  table: string,
  id: string,
  { changed, difference }: { readonly changed: number; readonly difference: Difference },
): string {
  const [documents, them] = changed === 1 ? ["document", "is not what it makes of it"] : [
    "documents",
    "are not what it makes of them",
  ];
  return `${changed} ${documents} of table "${table}" ${them}, such as "${id}": it would ` +
    `${differenceText(difference)}. ${adviceText(difference)}`;
}

/** Fields that do not match a table's definition. The message names the path of each error. */
export class InvalidFieldsError extends TypeError {}

/** A stored document that does not match the new schema. The message names the table, the document and the field. */
export class SchemaError extends Error {
  readonly table: string;
  readonly id: string;

  constructor(
    table: string,
    id: string,
    options:
      | { readonly reason: string; readonly cause?: unknown }
      /** Number of documents that the schema would change, and the first difference. */
      | { readonly changed: number; readonly difference: Difference },
  ) {
    super(
      `Cannot apply the schema: ${
        "reason" in options ? unfitText(table, id, options) : changedText(table, id, options)
      }`,
      "cause" in options ? { cause: options.cause } : {},
    );
    this.name = "SchemaError";
    this.table = table;
    this.id = id;
  }
}
