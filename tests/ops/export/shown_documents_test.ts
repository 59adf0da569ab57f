/** Exports with a filter. */
import assert from "node:assert/strict";
import { Hono } from "hono";
import { failureResponse } from "../../../mod/kit/error_response.ts";
import { type ExportSnapshot, openExport } from "../../../mod/engine/mod.ts";
import { functionLimits } from "../../../mod/limits.ts";
import { opsLimits } from "../../../mod/ops/limits.ts";
import { exportRoutes } from "../../../mod/ops/tables/export/mod.ts";
import { exportPieces, parseFilter } from "../../../mod/ops/tables/export/pieces.ts";
import { anyTable, TestDatabase } from "../../engine/support.ts";

const STATES = ["open", "paid", "sent"];

function orders(): TestDatabase {
  const database = new TestDatabase({
    orders: anyTable({
      indexes: [{ name: "by_state", fields: ["state", "total"] }],
      searchIndexes: [{ name: "search_title", searchField: "title", filterFields: ["state"] }],
    }),
  });
  database.commit((tx) => {
    for (let n = 0; n < 9; n++) {
      tx.insert("orders", {
        n,
        state: STATES[n % 3] ?? null,
        total: 10 - n,
        title: n % 2 === 0 ? "green tea" : "black coffee",
        ...(n === 4 && { note: { by: "Ada" } }),
      });
    }
  });
  return database;
}

const shown = (where: object) => parseFilter(JSON.stringify(where));

function numbers(database: TestDatabase, where: object): number[] {
  using snapshot = openExport(database.path);
  const pieces = exportPieces(snapshot, { table: "orders", format: "jsonl", shown: shown(where) });
  return [...pieces].map(({ text }) => text).join("").split("\n").filter((line) => line !== "")
    .map((line) => JSON.parse(line).n);
}

Deno.test("[EX17] a filter exports matching documents in its order", () => {
  using database = orders();
  for (
    const [where, expected] of [
      [{}, [8, 7, 6, 5, 4, 3, 2, 1, 0]],
      [{ order: "asc" }, [0, 1, 2, 3, 4, 5, 6, 7, 8]],
      [{ index: "by_state", range: { eq: ["paid"] } }, [7, 4, 1]],
      [{ index: "by_state", range: { eq: ["paid"], gt: 3 }, order: "desc" }, [1, 4]],
      [{ index: "by_state", range: { eq: ["paid"], gte: 3, lt: 9 } }, [7, 4]],
      [{ index: "by_state", range: { gt: null, lte: "open" } }, [6, 3, 0]],
      [{ index: "by_state", range: { eq: [{ $missing: true }] } }, []],
      [{ conditions: [{ field: "title", op: "contains", value: "TEA" }], order: "asc" }, [0, 2, 4, 6, 8]],
      [{ conditions: [{ field: "note.by", op: "eq", value: "Ada" }] }, [4]],
      [{ conditions: [{ field: "note", op: "missing" }, { field: "n", op: "gt", value: 6 }] }, [8, 7]],
      [{ conditions: [{ field: "note", op: "neq", value: { $missing: true } }] }, [4]],
    ] as const
  ) {
    assert.deepEqual(numbers(database, where), expected, JSON.stringify(where));
  }
  const search = (eq: object) => ({ search: { index: "search_title", text: "coffee", eq } });
  assert.deepEqual(numbers(database, search({})).toSorted(), [1, 3, 5, 7]);
  assert.deepEqual(numbers(database, search({ state: "paid" })).toSorted(), [1, 7]);
});

Deno.test("[EX17] the export is of one commit", () => {
  using database = orders();
  using snapshot = openExport(database.path);
  const where = { index: "by_state", range: { eq: ["open"] } };
  const pieces = exportPieces(snapshot, { table: "orders", format: "csv", shown: shown(where) });
  assert.match(pieces.next().value?.text ?? "", /^_id,_creationTime,n,state,total,title\r\n$/);
  database.commit((tx) => {
    for (const { doc } of [...tx.scan("orders", "by_creation_time", { eq: [] }, { order: "asc" })]) {
      tx.replace(doc._id, { n: -1, state: "open", total: 0, title: "new" });
    }
  });
  const rows = [...pieces].map(({ text }) => text).join("").trim().split("\r\n");
  assert.deepEqual(rows.map((row) => row.split(",")[2]), ["6", "3", "0"]);
});

Deno.test("[EX17] skipped documents are scanned in steps", () => {
  using database = new TestDatabase({ orders: anyTable() });
  database.commit((tx) => {
    for (let n = 0; n < 40; n++) tx.insert("orders", { n, body: "x".repeat(10_000) });
  });
  using snapshot = openExport(database.path);
  const conditions = [{ field: "n", op: "eq", value: 0 }];
  for (const format of ["jsonl", "csv"] as const) {
    const pieces = [...exportPieces(snapshot, { table: "orders", format, shown: shown({ conditions }) })];
    const pauses = pieces.filter(({ text }) => text === "").length;
    assert.ok(pauses >= 400_000 / opsLimits.exportPieceChars - 2, `${format} has ${pauses} pauses`);
    assert.equal(pieces.reduce((sum, { documents }) => sum + documents, 0), 1);
  }
});

/** A snapshot that counts the characters read. */
function counted(snapshot: ExportSnapshot, onRead: (chars: number) => void): ExportSnapshot {
  const { ts, tables, numbers } = snapshot;
  return {
    ...{ ts, tables, numbers },
    documents: (table) => snapshot.documents(table),
    *rows(table, wanted) {
      for (const row of snapshot.rows(table, wanted)) {
        onRead(row.text.length);
        yield row;
      }
    },
    document: (id) => snapshot.document(id),
    count: (table) => snapshot.count(table),
    [Symbol.dispose]: () => snapshot[Symbol.dispose](),
  };
}

Deno.test("[EX13] [EX17] reads between two pieces are bounded, also with some matches", () => {
  using database = new TestDatabase({ orders: anyTable() });
  const body = "x".repeat(1_000);
  database.commit((tx) => {
    for (let n = 0; n < 1_000; n++) tx.insert("orders", { hit: n % 30 === 0, body });
  });
  using snapshot = openExport(database.path);
  const conditions = [{ field: "hit", op: "eq", value: true }];
  for (const format of ["jsonl", "csv"] as const) {
    let read = 0;
    let documents = 0;
    const from = counted(snapshot, (chars) => void (read += chars));
    for (const piece of exportPieces(from, { table: "orders", format, shown: shown({ conditions }) })) {
      assert.ok(read <= opsLimits.exportPieceChars + 2_000, `${format}: ${read} characters at once`);
      read = 0;
      documents += piece.documents;
    }
    assert.ok(read <= opsLimits.exportPieceChars + 2_000, `${format}: ${read} characters at the end`);
    assert.equal(documents, 34);
  }
});

Deno.test("[EX17] a CSV, which is read twice, ranks its search once", () => {
  using database = orders();
  using snapshot = openExport(database.path);
  const asked = new Set<unknown>();
  let walks = 0;
  const from: ExportSnapshot = {
    ...counted(snapshot, () => {}),
    rows(table, wanted) {
      asked.add(wanted);
      walks++;
      return snapshot.rows(table, wanted);
    },
  };
  const search = { search: { index: "search_title", text: "coffee", eq: { state: "paid" } } };
  const pieces = [...exportPieces(from, { table: "orders", format: "csv", shown: shown(search) })];
  assert.equal(pieces.reduce((sum, { documents }) => sum + documents, 0), 2);
  assert.deepEqual([walks, asked.size], [2, 1], "what is ranked is kept for what was asked for");
});

Deno.test("[EX17] a search exports all results or is rejected before the first document", () => {
  using database = new TestDatabase({
    orders: anyTable({
      searchIndexes: [{ name: "search_title", searchField: "title", filterFields: [] }],
    }),
  });
  const insert = (count: number) =>
    database.commit((tx) => {
      for (let n = 0; n < count; n++) tx.insert("orders", { n, title: "tea" });
    });
  const search = { search: { index: "search_title", text: "tea", eq: {} } };
  for (let left: number = functionLimits.documentsReadMax; left > 0; left -= 8_000) {
    insert(Math.min(left, 8_000));
  }
  const found = numbers(database, search);
  assert.deepEqual([found.length, new Set(found).size], [functionLimits.documentsReadMax, 8_000]);
  insert(1);
  assert.throws(() => numbers(database, search), /finds more than 32000 documents/);
});

Deno.test("[EX17] an invalid filter is rejected; one without matches is not", async () => {
  using database = orders();
  const app = new Hono();
  app.onError((error) => failureResponse(error, () => {}));
  app.route(
    "/",
    exportRoutes({ databasePath: database.path, stagedDatabase: () => Promise.resolve(null), log: () => {} }),
  );
  const get = async (where: string, format = "jsonl") =>
    await app.request(`/export/orders?format=${format}`, { method: "POST", body: where });
  for (
    const [where, message] of [
      ["{", /Invalid filter/],
      ["", /Invalid filter/],
      ["[]", /Invalid filter/],
      [{ unknown: 1 }, /Invalid filter/],
      [{ table: "_codes" }, /Invalid filter/],
      [{ conditions: [{ field: "n", op: "near", value: 1 }] }, /Invalid filter/],
      [{ index: "by_nothing" }, /no index "by_nothing"/],
      [{ index: "search_title" }, /search index/],
      [{ index: "by_state", range: { eq: [1, 2, 3, 4] } }, /Too many conditions/],
      [{ index: "by_state", range: { gt: 1, gte: 1 } }, /one bound at each end/],
      [{ search: { index: "by_state", text: "a" } }, /search index/],
      [{ search: { index: "search_title", text: "a" }, order: "asc" }, /cannot be combined/],
      [{ search: { index: "search_title", text: "a", eq: { n: 1 } } }, /./],
      [{ conditions: [{ field: "x".repeat(opsLimits.exportWhereCharsMax), op: "missing" }] }, /exceeds/],
    ] as const
  ) {
    const response = await get(typeof where === "string" ? where : JSON.stringify(where));
    const { errorData, errorMessage } = await response.json();
    assert.equal(`${response.status} ${errorData?.code}`, "400 bad_request", JSON.stringify(where));
    assert.match(errorMessage, message);
  }
  const nothing = JSON.stringify({ conditions: [{ field: "n", op: "eq", value: -5 }] });
  assert.equal(await (await get(nothing)).text(), "");
  assert.equal(await (await get(nothing, "csv")).text(), "_id,_creationTime\r\n");
  const inAddress = await app.request(`/export/orders?${new URLSearchParams({ where: nothing })}`);
  assert.equal(inAddress.status, 400, "nothing is exported that was not asked for");
  assert.match((await inAddress.json()).errorMessage, /in the body of a POST/);
  const long = await app.request("/export/orders", {
    method: "POST",
    body: "x".repeat(4 * opsLimits.exportWhereCharsMax + 1),
  });
  assert.equal(long.status, 413);
});
