/**
 * The engine alone, in one process, beside the same work straight on `node:sqlite`: how much of an operation is ours.
 * Rounds of both take turns and the medians are compared, so that a busy machine slows both.
 *
 * deno run --allow-read --allow-write bench/engine_bench.ts
 */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { openReaderDatabase, openWriterDatabase } from "../mod/engine/mod.ts";
import type { SchemaDefinition, TableDefinition } from "../mod/engine/mod.ts";
import { vectorIndex } from "../mod/engine/vectors/vector_index.ts";
import { encodeQuery, VectorStore } from "../mod/engine/vectors/vector_store.ts";
import { markdown, type Row } from "./table.ts";

const ACCOUNTS = 100_000;
const VECTORS = 20_000;
const DIMENSIONS = 384;
const ROUNDS = 7;

function tableOf(parts: Partial<TableDefinition>): TableDefinition {
  const validate = (fields: Record<string, unknown>) => fields as ReturnType<TableDefinition["validate"]>;
  return { indexes: [], searchIndexes: [], vectorIndexes: [], fingerprint: "1", validate, ...parts };
}

const by_vector = { name: "by_vector", vectorField: "vector", dimensions: DIMENSIONS, filterFields: [] };
const schema: SchemaDefinition = new Map([
  ["accounts", tableOf({ indexes: [{ name: "by_number", fields: ["number"] }] })],
  ["notes", tableOf({ searchIndexes: [{ name: "by_body", searchField: "body", filterFields: [] }] })],
  ["things", tableOf({ vectorIndexes: [by_vector] })],
]);

let state = 0x12345678;
/** Random numbers that are the same in each run, below `end`. */
function random(end: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor(state / 2 ** 32 * end);
}

/** Microseconds for each of `count` calls. */
function time(count: number, run: () => void): number {
  const start = performance.now();
  for (let index = 0; index < count; index++) run();
  return (performance.now() - start) * 1000 / count;
}

function median(numbers: number[]): number {
  return numbers.sort((a, b) => a - b)[numbers.length >> 1] ?? NaN;
}

function compare(
  name: string,
  work: { count: number; ours: () => void; bare: () => void; control: string },
): Row {
  const ours: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const [first, second] = [time(work.count, work.ours), time(work.count, work.bare)];
    // The first round warms up.
    if (round > 0) ours.push(first), bare.push(second);
  }
  const [us, control] = [median(ours), median(bare)];
  return {
    name,
    measured: `${us.toFixed(1)} us`,
    control: `${control.toFixed(1)} us ${work.control}`,
    ratio: us / control,
    target: null,
    details: { us, control },
  };
}

const folder = Deno.makeTempDirSync({ prefix: "syncline-bench-" });
try {
  Deno.stdout.writeSync(new TextEncoder().encode(`${markdown(measure())}\n`));
} finally {
  Deno.removeSync(folder, { recursive: true });
}

function measure(): Row[] {
  using writer = openWriterDatabase(`${folder}/data.db`);
  writer.applySchema(schema);
  const group = (run: (tx: ReturnType<typeof writer.beginMutation>) => void) => {
    writer.openGroup();
    run(writer.beginMutation({ at: Date.now() }));
    writer.releaseMutation();
    writer.commitGroup("");
  };
  const words = Array.from({ length: 5_000 }, (_, n) => `w${(n * 7919 % 5_000).toString(36)}`);
  for (let from = 0; from < ACCOUNTS; from += 5_000) {
    group((tx) => {
      for (let number = from; number < from + 5_000; number++) {
        tx.insert("accounts", { number, balance: 1e9, name: `account ${number}` });
        tx.insert("notes", {
          body: Array.from({ length: 12 }, () => words[Math.min(random(5_000), random(5_000))]).join(" "),
        });
      }
    });
  }
  for (let from = 0; from < VECTORS; from += 1_000) {
    group((tx) => {
      for (let n = 0; n < 1_000; n++) {
        tx.insert("things", {
          vector: Array.from({ length: DIMENSIONS }, () => random(2_000_001) / 1e6 - 1),
        });
      }
    });
  }

  // The control: the same rows under the same settings, in a database of its own.
  using control = new DatabaseSync(`${folder}/control.db`);
  control.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;
    PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY;
    CREATE TABLE accounts (rid INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, doc TEXT NOT NULL);
    CREATE TABLE by_number (number INTEGER PRIMARY KEY, rid INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE records (session TEXT, request INTEGER, answer TEXT, PRIMARY KEY (session, request)) WITHOUT ROWID`);
  const arrays = (sql: string) => {
    const statement = control.prepare(sql);
    (statement as unknown as { setReturnArrays(on: boolean): void }).setReturnArrays(true);
    return statement as unknown as Record<"get" | "all" | "run", (...values: SQLInputValue[]) => unknown[]>;
  };
  using reader = openReaderDatabase(`${folder}/data.db`);
  reader.useSchema(schema);
  reader.openSnapshot();
  const ids: string[] = [];
  {
    const insert = arrays("INSERT INTO accounts (id, doc) VALUES (?, ?)");
    const enter = arrays("INSERT INTO by_number (number, rid) VALUES (?, ?)");
    control.exec("BEGIN");
    for (let from = 0; from < ACCOUNTS; from += 10_000) {
      const bounds = { eq: [], lower: { value: from, inclusive: true } };
      for (const { doc } of reader.beginQuery().scan("accounts", "by_number", bounds, { order: "asc" })) {
        if (ids.length === from + 10_000) break;
        insert.run(doc._id, JSON.stringify(doc));
        enter.run(ids.push(doc._id) - 1, ids.length);
      }
    }
    control.exec("COMMIT");
  }
  reader.closeSnapshot();

  const sessions = Array.from({ length: 64 }, () => crypto.randomUUID());
  const answer = JSON.stringify({ value: "null", ts: 12_345 });
  const [lookUp, range, getById, update, record] = [
    arrays("SELECT d.rid, d.doc FROM by_number n CROSS JOIN accounts d ON d.rid = n.rid WHERE n.number = ?"),
    arrays(
      "SELECT d.doc FROM by_number n CROSS JOIN accounts d ON d.rid = n.rid WHERE n.number >= ? AND n.number < ?",
    ),
    arrays("SELECT doc FROM accounts WHERE id = ?"),
    arrays("UPDATE accounts SET doc = ? WHERE rid = ?"),
    arrays("INSERT INTO records (session, request, answer) VALUES (?, ?, ?)"),
  ];
  let request = 0;
  const rows: Row[] = [];
  rows.push(compare("transfer: 2 look-ups, 2 patches, 1 record, groups of 100 (each)", {
    count: 20,
    control: "bare",
    ours: () => {
      writer.openGroup();
      for (let call = 0; call < 100; call++) {
        const key = { sessionId: sessions[call % 64] ?? "", requestId: ++request, principal: null };
        writer.findRecord(key);
        const tx = writer.beginMutation({ at: Date.now() });
        for (const change of [-1, 1]) {
          const scan = tx.scan("accounts", "by_number", { eq: [random(ACCOUNTS)] }, {
            order: "asc",
            expected: 2,
          });
          for (const { doc } of scan) tx.patch(doc._id, { balance: (doc["balance"] as number) + change });
        }
        writer.releaseMutation();
        writer.saveRecord(key, answer);
      }
      writer.commitGroup("");
    },
    bare: () => {
      control.exec("BEGIN IMMEDIATE");
      for (let call = 0; call < 100; call++) {
        for (const change of [-1, 1]) {
          const [rid, text] = lookUp.get(random(ACCOUNTS)) as [number, string];
          const doc = JSON.parse(text) as { balance: number };
          doc.balance += change;
          update.run(JSON.stringify(doc), rid);
        }
        record.run(sessions[call % 64] ?? "", ++request, answer);
      }
      control.exec("COMMIT");
    },
  }));
  reader.openSnapshot();
  const view = reader.beginQuery.bind(reader);
  rows.push(compare("get by id", {
    count: 5_000,
    control: "bare",
    ours: () => void view().get(ids[random(ACCOUNTS)] ?? ""),
    bare: () => void JSON.parse(getById.get(ids[random(ACCOUNTS)] ?? "")[0] as string),
  }));
  rows.push(compare("unique by index, with read set", {
    count: 5_000,
    control: "bare",
    ours: () => {
      const tx = view();
      for (
        const _ of tx.scan("accounts", "by_number", { eq: [random(ACCOUNTS)] }, { order: "asc", expected: 2 })
      );
      tx.readSet();
    },
    bare: () => void JSON.parse(lookUp.get(random(ACCOUNTS))[1] as string),
  }));
  rows.push(compare("range of 100", {
    count: 300,
    control: "bare",
    ours: () => {
      const from = random(ACCOUNTS - 100);
      const bounds = {
        eq: [],
        lower: { value: from, inclusive: true },
        upper: { value: from + 100, inclusive: false },
      };
      for (const _ of view().scan("accounts", "by_number", bounds, { order: "asc" }));
    },
    bare: () => {
      const from = random(ACCOUNTS - 100);
      for (const [text] of range.all(from, from + 100) as [string][]) JSON.parse(text);
    },
  }));
  using fts = new DatabaseSync(`${folder}/data.db`, { readOnly: true });
  const match = fts.prepare("SELECT rowid FROM s4 WHERE s4 MATCH ? ORDER BY rank LIMIT 10");
  const word = () => words[random(5_000)] ?? "";
  rows.push(compare("search for two words in 100,000 documents, first 10", {
    count: 50,
    control: "FTS5 alone",
    ours: () => {
      const found = view().search("notes", "by_body", { query: `${word()} ${word()}`, filters: [] });
      for (let taken = 0; taken < 10 && found.next().done !== true; taken++);
    },
    bare: () => void match.all(`text : ("${word()}" OR "${word()}" *)`),
  }));
  const store = new VectorStore(vectorIndex(1, by_vector));
  const vector = () => Array.from({ length: DIMENSIONS }, () => random(2_000_001) / 1e6 - 1);
  const row = { vector: new Float32Array(vector()), filters: "[]" };
  for (let rid = 0; rid < VECTORS; rid++) store.put(rid, row);
  rows.push(compare(`10 nearest of ${VECTORS} vectors of ${DIMENSIONS}`, {
    count: 10,
    control: "bytes alone",
    ours: () => void view().vectorSearch("things", "by_vector", { vector: vector(), limit: 10, filters: [] }),
    bare: () => void store.compare(encodeQuery(new Float64Array(vector())), []),
  }));
  reader.closeSnapshot();
  return rows;
}
