/** Imports on the real engine in this process, with an app of the test's choice. */
import { join } from "node:path";
import { anonymous } from "../../../../mod/functions/identity.ts";
import { assembleApp } from "../../../../mod/functions/isolate/app/loader.ts";
import type { Outcome } from "../../../../mod/functions/outcome.ts";
import { defineSchema, mutation, query } from "../../../../mod/functions/api/mod.ts";
import { opsModules } from "../../../../mod/ops/isolate_functions/mod.ts";
import {
  Importer,
  type ImportMode,
  type ImportProgress,
  type ImportSource,
  type ImportSummary,
} from "../../../../mod/ops/tables/import/mod.ts";
import type { TableFormat } from "../../../../mod/ops/tables/mod.ts";
import { InProcessHost } from "../../../../mod/testing/in_process_host.ts";

type Tables = Parameters<typeof defineSchema>[0];
type Row = Record<string, unknown>;

/** A file in memory. */
export function source(
  table: string,
  text: string | Uint8Array,
  { format = "jsonl", pieceBytes = 1 << 16 }: {
    readonly format?: TableFormat;
    readonly pieceBytes?: number;
  } = {},
): ImportSource {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  return {
    name: `${table}.${format}`,
    table,
    format,
    async *open() {
      for (let from = 0; from < bytes.length; from += pieceBytes) yield bytes.slice(from, from + pieceBytes);
    },
  };
}

/** Lines of JSONL. */
export function jsonl(rows: readonly unknown[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join("");
}

export class ImportWorld implements AsyncDisposable {
  readonly host: InProcessHost;
  readonly dir: string;
  readonly clock = { now: Date.UTC(2030, 0, 1) };

  constructor(tables: Tables, functions: Readonly<Record<string, unknown>> = {}) {
    this.dir = Deno.makeTempDirSync();
    const look = {
      rows: query((ctx, { table }: Row) => ctx.db.query(table as string).collect()),
      insert: mutation((ctx, { table, fields }: Row) => ctx.db.insert(table as string, fields as Row)),
      ...functions,
    };
    const app = assembleApp([
      { name: "schema.ts", modulePath: "schema", exports: { default: defineSchema(tables) } },
      { name: "look.ts", modulePath: "look", exports: look },
    ], { systemModules: opsModules, named: [] });
    this.host = new InProcessHost({
      app,
      functionsUrl: "",
      databasePath: join(this.dir, "data.db"),
      now: () => this.clock.now,
      env: {},
    });
    this.host.serveQueries((call) => this.query(call));
  }

  /** Checks and writes. */
  async import(
    file: ImportSource,
    mode: ImportMode = "insert",
    onProgress: (progress: ImportProgress) => void = () => {},
  ): Promise<ImportSummary> {
    const importer = new Importer({ port: this.host, mode, onProgress });
    await importer.check(file);
    return await importer.write(file);
  }

  /** Error message of an import. */
  async refusal(file: ImportSource, mode: ImportMode = "insert"): Promise<string> {
    try {
      await this.import(file, mode);
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
    return "";
  }

  /** Documents of a table, by creation time. */
  async rows(table: string): Promise<Row[]> {
    return await this.call("rows", { table }) as Row[];
  }

  /** Documents of a table without system fields. */
  async fields(table: string): Promise<Row[]> {
    return (await this.rows(table)).map(({ _id, _creationTime, ...fields }) => fields);
  }

  async insert(table: string, fields: Row): Promise<string> {
    return await this.call("insert", { table, fields }) as string;
  }

  /** Calls a function of the app as a client. */
  async call(name: string, args: Row = {}): Promise<unknown> {
    const call = { udfPath: `look:${name}`, args, identity: anonymous, origin: "client" } as const;
    const kind = this.host.info(call.udfPath)?.kind;
    const outcome = kind === "mutation"
      ? (await this.host.mutate(call)).outcome
      : kind === "action"
      ? await this.host.act(call)
      : await this.query(call);
    if (!outcome.ok) throw new Error(outcome.error.message);
    return JSON.parse(outcome.value);
  }

  query(call: Parameters<InProcessHost["startQueryBatch"]>[0][number]): Promise<Outcome> {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    this.host.startQueryBatch([call], (_, { outcome }) => resolve(outcome));
    return promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.host[Symbol.dispose]();
    await Deno.remove(this.dir, { recursive: true });
  }
}
