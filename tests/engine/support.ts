/** Shared by the engine's tests: temporary databases, simple schemas, and difficult values. */
import fc from "fast-check";
import { idSource, type NewId, openReaderDatabase, openWriterDatabase } from "../../mod/engine/mod.ts";
import type {
  CommitEntry,
  ReaderDatabase,
  SchemaDefinition,
  TableDefinition,
  Value,
  WriterDatabase,
  WriteTransaction,
} from "../../mod/engine/mod.ts";

/** A temporary folder with a database path, removed at the end of the block. */
export class TemporaryDatabase implements Disposable {
  readonly #folder = Deno.makeTempDirSync({ prefix: "syncline-engine-" });

  get path(): string {
    return `${this.#folder}/data.db`;
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.#folder, { recursive: true });
  }
}

/** Returns a table definition that accepts any fields. */
export function anyTable(parts: Partial<TableDefinition> = {}): TableDefinition {
  return {
    indexes: [],
    searchIndexes: [],
    vectorIndexes: [],
    validate: (fields) => fields as Record<string, Value>,
    ...parts,
  };
}

export function schemaOf(tables: Record<string, TableDefinition>): SchemaDefinition {
  return new Map(Object.entries(tables));
}

/** Generates the same ids for the same seed. */
export function seededIds(seed: number): NewId {
  let state = seed;
  return idSource((pool) => {
    for (let place = 0; place < pool.length; place++) {
      // Mulberry32.
      state = (state + 0x6d2b79f5) | 0;
      let bits = Math.imul(state ^ (state >>> 15), state | 1);
      bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
      pool[place] = bits ^ (bits >>> 14);
    }
  });
}

/** A writer and a reader of one temporary database. */
export class TestDatabase implements Disposable {
  readonly #folder = new TemporaryDatabase();
  readonly schema: SchemaDefinition;
  writer: WriterDatabase;
  readonly reader: ReaderDatabase;
  /** Clock of the mutations, ms. */
  now = 1_700_000_000_000;

  constructor(tables: Record<string, TableDefinition>, options: { readonly pagesMax?: number } = {}) {
    this.schema = schemaOf(tables);
    this.writer = openWriterDatabase(this.path, { now: () => this.now, ...options });
    this.writer.applySchema(this.schema);
    this.reader = openReaderDatabase(this.path);
    this.reader.useSchema(this.schema);
  }

  get path(): string {
    return this.#folder.path;
  }

  /** Commits one mutation in a separate group. */
  commit<Result>(
    run: (tx: WriteTransaction) => Result,
  ): { readonly result: Result; readonly entry: CommitEntry | null } {
    this.writer.openGroup();
    try {
      const result = run(this.writer.beginMutation({ at: this.now }));
      const entry = this.writer.releaseMutation();
      this.writer.commitGroup("");
      return { result, entry };
    } catch (error) {
      this.writer.rollbackGroup();
      throw error;
    }
  }

  /** Runs one query on the newest state. */
  query<Result>(run: (tx: ReturnType<ReaderDatabase["beginQuery"]>) => Result): Result {
    this.reader.openSnapshot();
    try {
      return run(this.reader.beginQuery());
    } finally {
      this.reader.closeSnapshot();
    }
  }

  /** Closes the writer and opens it again. */
  reopen(): void {
    this.writer[Symbol.dispose]();
    this.writer = openWriterDatabase(this.path, { now: () => this.now });
    this.writer.applySchema(this.schema);
  }

  [Symbol.dispose](): void {
    this.reader[Symbol.dispose]();
    this.writer[Symbol.dispose]();
    this.#folder[Symbol.dispose]();
  }
}

/** Strings that are hard to sort or encode: controls, quotes, the ends of the BMP, lone and paired surrogates. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: "binary", maxLength: 6 }),
  fc.string({
    unit: fc.constantFrom(
      "\u0000",
      "\u0001",
      "\u001f",
      " ",
      "!",
      '"',
      "#",
      "a",
      "}",
      "~",
      "\u007f",
      "\u0080",
      "\ud7ff",
      "\ud800",
      "\udbff",
      "\udc00",
      "\udfff",
      "\ue000",
      "\uffff",
      "\u{10000}",
      "\u{10ffff}",
    ),
    maxLength: 5,
  }),
);

/** Numbers at the limits of the format. */
export const hostileNumber: fc.Arbitrary<number> = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.integer(),
  fc.constantFrom(
    0,
    -0,
    1,
    -1,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    Number.MAX_VALUE,
    -Number.MAX_VALUE,
    2 ** 53,
    2 ** 53 + 2,
    -(2 ** 53),
    2 ** 31,
    2 ** 32,
    0.1,
    1 / 3,
    4095,
    4096,
    65536,
    1.7e12 + 2 ** -10,
  ),
);

/** Any value of a document. */
export const anyValue: fc.Arbitrary<Value> = fc.letrec<{ value: Value }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constant(null),
    fc.boolean(),
    hostileNumber,
    hostileText,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(hostileText, tie("value"), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value;
