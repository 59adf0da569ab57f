/** `ctx.db` on a real database, without a process: for tests of its semantics. */
import type { SchemaDefinition } from "../../../mod/engine/mod.ts";
import {
  openReaderDatabase,
  openWriterDatabase,
  type ReaderDatabase,
  type WriterDatabase,
} from "../../../mod/engine/mod.ts";
import type { DatabaseReader, DatabaseWriter } from "../../../mod/functions/api/database.ts";
import { type Schema, schemaDefinition, setTableResolver } from "../../../mod/functions/api/schema.ts";
import type { AnyDataModel, DataModel } from "../../../mod/functions/api/values.ts";
import { anonymous } from "../../../mod/functions/identity.ts";
import { asCall, Call, currentCall, Frame } from "../../../mod/functions/isolate/runs/call.ts";
import { DatabaseApi } from "../../../mod/functions/isolate/ctx/database_api.ts";
import { AppTables } from "../../../mod/functions/isolate/app/app_tables.ts";
import type { ReadSet } from "../../../mod/engine/types.ts";

/** A database with a schema, and transactions on it as handlers see them. */
export class TestDatabase<Model extends DataModel = AnyDataModel> implements Disposable {
  readonly #dir = Deno.makeTempDirSync({ prefix: "syncline-db-" });
  readonly #writer: WriterDatabase;
  readonly #reader: ReaderDatabase;
  readonly #tables: AppTables;
  #at = 1_700_000_000_000;

  constructor(schema: Schema) {
    const definition: SchemaDefinition = schemaDefinition(schema) ?? new Map();
    this.#writer = openWriterDatabase(`${this.#dir}/data.db`);
    this.#writer.applySchema(definition);
    this.#reader = openReaderDatabase(`${this.#dir}/data.db`);
    this.#reader.useSchema(definition);
    this.#tables = new AppTables({ app: definition, system: new Map() });
    setTableResolver((id) => currentCall()?.reads?.tableOf(id));
  }

  /** Runs a mutation: committed when `run` resolves, undone when it throws. */
  async write<Result>(run: (db: DatabaseWriter<Model>) => Promise<Result> | Result): Promise<Result> {
    this.#writer.openGroup();
    const writes = this.#writer.beginMutation({ at: this.#at += 1000 });
    const call = new Call({ udfPath: "test", identity: anonymous, at: this.#at, seed: null, reads: writes });
    const frame = new Frame(call, { reads: writes, writes, caller: null, system: false });
    try {
      const result = await asCall(
        call,
        () => run(new DatabaseApi(frame, this.#tables) as unknown as DatabaseWriter<Model>),
      );
      this.#writer.releaseMutation();
      return result;
    } catch (error) {
      this.#writer.rollbackMutation();
      throw error;
    } finally {
      frame.close();
      this.#writer.commitGroup("");
    }
  }

  /** Runs a query at the newest state. */
  async read<Result>(run: (db: DatabaseReader<Model>) => Promise<Result> | Result): Promise<Result> {
    return (await this.readWithSet(run)).result;
  }

  /** The same, with the read set. */
  async readWithSet<Result>(
    run: (db: DatabaseReader<Model>) => Promise<Result> | Result,
  ): Promise<{ readonly result: Result; readonly readSet: ReadSet }> {
    this.#reader.openSnapshot();
    const reads = this.#reader.beginQuery();
    const call = new Call({ udfPath: "test", identity: anonymous, at: this.#at, seed: null, reads });
    const frame = new Frame(call, { reads, writes: null, caller: null, system: false });
    try {
      const result = await asCall(
        call,
        () => run(new DatabaseApi(frame, this.#tables) as unknown as DatabaseReader<Model>),
      );
      return { result, readSet: reads.readSet() };
    } finally {
      frame.close();
      this.#reader.closeSnapshot();
    }
  }

  [Symbol.dispose](): void {
    this.#reader[Symbol.dispose]();
    this.#writer[Symbol.dispose]();
    Deno.removeSync(this.#dir, { recursive: true });
  }
}
