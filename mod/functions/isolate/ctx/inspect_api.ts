/** `ctx.inspector` of the service's functions: information about the app and the whole database. */
import type { Doc, Inspection, TableSize } from "../../../engine/mod.ts";
import type { TableDefinition } from "../../../engine/types.ts";
import { ProfileBuilder } from "../../api/profile.ts";
import type { ProfileSource } from "../../api/values.ts";
import { TableBuilder, tableSchema } from "../../api/schema.ts";
import type {
  FieldIssue,
  FunctionFacts,
  Inspector,
  TableFacts,
  Walk,
  WalkOptions,
} from "../../api/system_context.ts";
import { fieldIssues } from "../../api/zod_issues.ts";
import type { App, LoadedFunction } from "../app/app.ts";
import type { OrderedQuery } from "../../api/database.ts";
import type { Frame } from "../runs/call.ts";
import { positionsIn, type QueryPositions, TableQueryApi } from "./table_query.ts";
import { jsonSchemaOf } from "../app/json_schema.ts";
import type { AppTables } from "../app/app_tables.ts";

export class InspectApi implements Inspector {
  readonly #app: App;
  readonly #frame: Frame;

  constructor(app: App, frame: Frame) {
    this.#app = app;
    this.#frame = frame;
  }

  tables(): TableFacts[] {
    return this.#app.tables.all().map(tableFacts);
  }

  orphanedTables(): TableFacts[] {
    const stored = this.#frame.reads.inspect?.().orphaned() ?? new Map<string, TableDefinition>();
    return [...stored].map(([name, { indexes, searchIndexes, vectorIndexes }]) => ({
      name,
      ofService: false,
      schema: { type: "object" },
      indexes,
      searchIndexes,
      vectorIndexes,
      aggregates: [],
      deletedWithUser: null,
    }));
  }

  functions(): FunctionFacts[] {
    return [...this.#app.functions.values()].map(functionFacts);
  }

  has(path: string): boolean {
    return this.#app.functions.has(path);
  }

  newProfile(source: ProfileSource): Record<string, unknown> | undefined {
    const { profile } = this.#app;
    return profile === undefined ? undefined : ProfileBuilder.begin(profile, source);
  }

  issues(table: string, fields: Readonly<Record<string, unknown>>): FieldIssue[] {
    const parsed = tableSchema(this.#app.tables.readable(this.#frame, table)).safeParse(fields);
    return parsed.success ? [] : fieldIssues(parsed.error);
  }

  walk(table: string, { after, rowsMax, charsMax }: WalkOptions): Walk {
    this.#app.tables.readable(this.#frame, table);
    const { reads } = this.#frame;
    const enough = reads.usage.charsRead + charsMax;
    const documents: Doc[] = [];
    const options = { order: "asc", expected: rowsMax, ...(after !== null && { after }) } as const;
    for (const { key, doc } of reads.scan(table, "by_creation_time", { eq: [] }, options)) {
      documents.push(doc);
      if (documents.length >= rowsMax || reads.usage.charsRead >= enough) return { documents, next: key };
    }
    return { documents, next: null };
  }

  count(table: string, max: number): number {
    return this.#inspection.count(table, max);
  }

  countRows(query: OrderedQuery<unknown>, max: number): number {
    return positionsOf(query, this.#inspection).count(max);
  }

  cursorBehind(query: OrderedQuery<unknown>, rows: number): string | null {
    return positionsOf(query, this.#inspection).cursorBehind(rows);
  }

  cursorBefore(query: OrderedQuery<unknown>, cursor: string, rows: number): string | null {
    return positionsOf(query, this.#inspection).cursorBefore(cursor, rows);
  }

  sizes(): TableSize[] {
    return this.#inspection.sizes();
  }

  spaces(): Record<string, { readonly table: string; readonly index: string }> {
    return Object.fromEntries(this.#inspection.spaces());
  }

  get #inspection(): Inspection {
    const inspection = this.#frame.reads.inspect?.();
    if (inspection === undefined) throw new TypeError("The inspector is not available in mutations");
    return inspection;
  }
}

function positionsOf(query: OrderedQuery<unknown>, inspection: Inspection): QueryPositions {
  if (!(query instanceof TableQueryApi)) throw new TypeError("The query belongs to another ctx");
  return query[positionsIn](inspection);
}

function tableFacts({ name, definition, ofService }: ReturnType<AppTables["all"]>[number]): TableFacts {
  const { indexes, searchIndexes, vectorIndexes, aggregates = [] } = definition;
  return {
    name,
    ofService,
    schema: jsonSchemaOf(tableSchema(definition)),
    indexes,
    searchIndexes,
    vectorIndexes,
    aggregates,
    deletedWithUser: TableBuilder.deletedWithUser(definition),
  };
}

function functionFacts({ udfPath, spec, system, doc }: LoadedFunction): FunctionFacts {
  const { kind, visibility, args, returns } = spec;
  return {
    path: udfPath,
    kind,
    visibility,
    ofService: system,
    doc: doc ?? null,
    args: args === null ? null : jsonSchemaOf(args),
    returns: returns === null ? null : jsonSchemaOf(returns),
  };
}
