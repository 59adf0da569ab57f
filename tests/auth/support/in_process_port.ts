/** The system functions of accounts on a real database, without isolates: calls run one after another in this process. */
import { join } from "node:path";
import { openReaderDatabase, openWriterDatabase } from "../../../mod/engine/mod.ts";
import type { ReadTransaction, WriteTransaction } from "../../../mod/engine/transaction.ts";
import type { CommitEntry, SchemaDefinition } from "../../../mod/engine/types.ts";
import { authModules } from "../../../mod/auth/isolate_functions/mod.ts";
import type { CallPort } from "../../../mod/auth/system_calls.ts";
import { functionSpec } from "../../../mod/functions/api/registration.ts";
import { ProfileBuilder } from "../../../mod/functions/api/profile.ts";
import { setTableResolver, TableBuilder } from "../../../mod/functions/api/schema.ts";
import type { FunctionCall, MutationAnswer, MutationCall } from "../../../mod/functions/host_port.ts";
import { adminAccess } from "../../../mod/functions/isolate/app/admin_access.ts";
import type { App, LoadedFunction } from "../../../mod/functions/isolate/app/app.ts";
import { runMutation } from "../../../mod/functions/isolate/runs/run_mutation.ts";
import { runQuery } from "../../../mod/functions/isolate/runs/run_query.ts";
import { AppTables } from "../../../mod/functions/isolate/app/app_tables.ts";
import type { Ending, Outcome } from "../../../mod/functions/outcome.ts";

export interface InProcessPort extends CallPort, AsyncDisposable {
  readonly info: (udfPath: string) => LoadedFunction | undefined;
  onCommits(listener: (entries: readonly CommitEntry[]) => void): void;
  /** Stored documents of a table. */
  rows(table: string): Record<string, unknown>[];
  /** Inserts a row directly. */
  insertRow(table: string, fields: Record<string, unknown>): Promise<void>;
  /** Deletes a row directly, without the functions of accounts. */
  deleteRow(id: string): Promise<void>;
}

/** Parts of an app. */
export interface AppParts {
  readonly tables: Readonly<Record<string, TableBuilder>>;
  /** By path. */
  readonly functions: Readonly<Record<string, unknown>>;
  /** Profile of its users. */
  readonly profile?: ProfileBuilder;
}

/** Opens a database in a temporary folder. `now` is the clock of its functions. */
export async function openInProcessPort(now: () => number, ofApp?: AppParts): Promise<InProcessPort> {
  const folder = await Deno.makeTempDir();
  const path = join(folder, "data.db");
  const { app, schema } = loadFunctions(ofApp);
  const writer = openWriterDatabase(path);
  writer.applySchema(schema);
  const reader = openReaderDatabase(path);
  reader.useSchema(schema);
  // For reads of the test while calls are running.
  const looker = openReaderDatabase(path);
  looker.useSchema(schema);
  const listeners: ((entries: readonly CommitEntry[]) => void)[] = [];
  let queue: Promise<unknown> = Promise.resolve();
  /** The running call is a global of the isolate's code, so queries wait in the same queue. */
  function inTurn<T>(run: () => T | Promise<T>): Promise<T> {
    const result = queue.then(run);
    queue = result.catch(() => {});
    return result;
  }
  function report(entry: CommitEntry | null): void {
    if (entry !== null) { for (const listener of listeners) listener([entry]); }
  }
  /** The resolver of `id()` is a global, too; the table of an id is the same at every snapshot. */
  async function withSnapshot<T>(run: (reads: ReadTransaction) => Promise<T>): Promise<T> {
    reader.openSnapshot();
    try {
      const reads = reader.beginQuery();
      setTableResolver((id) => reads.tableOf(id));
      return await run(reads);
    } finally {
      reader.closeSnapshot();
    }
  }
  async function mutateNow(call: MutationCall): Promise<MutationAnswer> {
    writer.openGroup();
    const { ending, logLines, ts, replayed, entry } = await runMutation(app, writer, {
      mutation: call,
      at: now(),
    });
    writer.commitGroup("");
    report(entry);
    return { outcome: outcomeOf(ending, logLines), ts, replayed };
  }
  async function queryNow(call: FunctionCall, reads: ReadTransaction): Promise<Outcome> {
    const { ending, logLines } = await runQuery(app, call, { reads, at: now() });
    return outcomeOf(ending, logLines);
  }
  function write(change: (transaction: WriteTransaction) => unknown): Promise<void> {
    return inTurn(() => {
      writer.openGroup();
      change(writer.beginMutation({ at: now() }));
      const entry = writer.releaseMutation();
      writer.commitGroup("");
      report(entry);
    });
  }
  return {
    mutate: (call) => inTurn(() => withSnapshot(() => mutateNow(call))),
    query: (call) => inTurn(() => withSnapshot((reads) => queryNow(call, reads))),
    info: (udfPath) => app.functions.get(udfPath),
    onCommits: (listener) => void listeners.push(listener),
    rows(table) {
      looker.openSnapshot();
      try {
        const all = { eq: [] };
        return [...looker.beginQuery().scan(table, "by_creation_time", all, { order: "asc" })].map((
          { doc },
        ) => doc);
      } finally {
        looker.closeSnapshot();
      }
    },
    insertRow: (table, fields) => write((transaction) => transaction.insert(table, fields)),
    deleteRow: (id) => write((transaction) => transaction.delete(id)),
    async [Symbol.asyncDispose]() {
      await queue;
      looker[Symbol.dispose]();
      reader[Symbol.dispose]();
      writer[Symbol.dispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

function loadFunctions(
  { tables, functions: ofApp, profile }: AppParts = { tables: {}, functions: {} },
): { app: App; schema: SchemaDefinition } {
  const functions = new Map<string, LoadedFunction>();
  const schema = new Map<string, ReturnType<typeof TableBuilder.definition>>();
  for (const module of authModules) {
    for (const [name, table] of Object.entries(module.tables)) {
      const extended = profile !== undefined && name === "_users"
        ? ProfileBuilder.extend(profile, table)
        : table;
      schema.set(name, TableBuilder.definition(extended));
    }
    for (const [name, declared] of Object.entries(module.functions)) {
      const spec = functionSpec(declared);
      if (spec === undefined) throw new TypeError(`${name} is not a function`);
      const udfPath = `${module.path}:${name}`;
      functions.set(udfPath, { udfPath, spec, system: true });
    }
  }
  const access = adminAccess(authModules);
  const app = new Map(Object.entries(tables).map(([name, table]) => [name, TableBuilder.definition(table)]));
  for (const [udfPath, declared] of Object.entries(ofApp)) {
    const spec = functionSpec(declared);
    if (spec === undefined) throw new TypeError(`${udfPath} is not a function`);
    functions.set(udfPath, { udfPath, spec, system: false });
  }
  return {
    app: {
      functions,
      tables: new AppTables({ app, system: schema, profiled: profile !== undefined }),
      ...(profile && { profile }),
      ...(access && { adminAccess: access }),
    },
    schema: new Map([...schema, ...app]),
  };
}

function outcomeOf(ending: Ending, logLines: readonly string[]): Outcome {
  return ending.ok
    ? { ok: true, value: ending.text, logLines }
    : { ok: false, error: ending.error, logLines };
}
