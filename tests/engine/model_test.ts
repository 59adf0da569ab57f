/**
 * Random histories of groups, mutations, savepoints, scans and rollbacks against the model: after each step the
 * engine has the same documents, entries have the changes, and read sets detect exactly these.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { readSetTouches } from "../../mod/engine/mod.ts";
import type {
  CommitEntry,
  Doc,
  IndexBounds,
  ReadSet,
  Value,
  WriteTransaction,
} from "../../mod/engine/mod.ts";
import { Model } from "./model.ts";
import { anyTable, hostileNumber, hostileText, TestDatabase } from "./support.ts";

const tables = {
  items: anyTable({
    indexes: [{ name: "by_a", fields: ["a"] }, { name: "by_a_b", fields: ["a", "b"] }],
  }),
  others: anyTable({ indexes: [{ name: "by_b", fields: ["b"] }] }),
};
const indexFields: Record<string, Record<string, readonly string[]>> = {
  items: { by_creation_time: [], by_a: ["a"], by_a_b: ["a", "b"] },
  others: { by_creation_time: [], by_b: ["b"] },
};

/** Few values, so that documents share index keys, and some difficult ones. */
const smallValue: fc.Arbitrary<Value> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.constantFrom<Value>(null, false, true, 0, 1, 2, "", "a", "b", [], [1], {}, { x: 1 }),
  },
  { weight: 1, arbitrary: hostileNumber },
  { weight: 1, arbitrary: hostileText },
);
const maybeSmall = fc.option(smallValue, { nil: undefined });
const fields = fc.record({ a: maybeSmall, b: maybeSmall, text: fc.string({ maxLength: 3 }) });
const table = fc.constantFrom("items", "others");
const bound = fc.record({ value: maybeSmall, inclusive: fc.boolean() });
const range = fc.record({
  table,
  index: fc.nat(2),
  eq: fc.array(maybeSmall, { maxLength: 2 }),
  lower: fc.option(bound, { nil: undefined }),
  upper: fc.option(bound, { nil: undefined }),
  order: fc.constantFrom("asc" as const, "desc" as const),
  take: fc.integer({ min: 0, max: 6 }),
  expected: fc.option(fc.nat(3), { nil: undefined }),
});
type RangeStep = typeof range extends fc.Arbitrary<infer T> ? T : never;

const write = fc.oneof(
  fc.record({ do: fc.constant("insert" as const), table, fields }),
  fc.record({
    do: fc.constant("patch" as const),
    table,
    pick: fc.nat(),
    fields: fc.oneof(fields, fc.record({ a: maybeSmall })),
  }),
  fc.record({ do: fc.constant("replace" as const), table, pick: fc.nat(), fields }),
  fc.record({ do: fc.constant("delete" as const), table, pick: fc.nat() }),
);
const step = fc.oneof(
  { weight: 6, arbitrary: write },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("scan" as const), range }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("loop" as const),
      range,
      writes: fc.array(write, { maxLength: 12 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("savepoint" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom("savepoint rollback" as const, "savepoint release" as const),
    }),
  },
);
type Write = typeof write extends fc.Arbitrary<infer T> ? T : never;

const mutation = fc.record({
  steps: fc.array(step, { maxLength: 12 }),
  end: fc.constantFrom("release" as const, "release" as const, "release" as const, "rollback" as const),
});
const history = fc.array(
  fc.record({
    mutations: fc.array(mutation, { minLength: 1, maxLength: 4 }),
    end: fc.constantFrom(
      "commit" as const,
      "commit" as const,
      "commit" as const,
      "rollback" as const,
      "reopen" as const,
    ),
    watched: fc.array(range, { maxLength: 4 }),
  }),
  { minLength: 1, maxLength: 5 },
);

function boundsOf(
  step: RangeStep,
): { readonly index: string; readonly fields: readonly string[]; readonly bounds: IndexBounds } {
  const indexes = Object.entries(indexFields[step.table] ?? {});
  const [index, fields] = indexes[step.index % indexes.length] ?? ["by_creation_time", []];
  const eq = step.eq.slice(0, fields.length);
  return {
    index,
    fields,
    bounds: {
      eq,
      ...(step.lower === undefined ? {} : { lower: step.lower }),
      ...(step.upper === undefined ? {} : { upper: step.upper }),
    },
  };
}

function expectedRows(model: Model, step: RangeStep): Doc[] {
  const { fields, bounds } = boundsOf(step);
  const rows = model.range(step.table, fields, bounds);
  return step.order === "asc" ? rows : rows.reverse();
}

function scanOf(tx: Pick<WriteTransaction, "scan">, step: RangeStep) {
  const { index, bounds } = boundsOf(step);
  return tx.scan(step.table, index, bounds, {
    order: step.order,
    ...(step.expected === undefined ? {} : { expected: step.expected }),
  });
}

function firstOf(tx: Pick<WriteTransaction, "take">, step: RangeStep): Doc[] {
  const { index, bounds } = boundsOf(step);
  return tx.take(step.table, index, bounds, { order: step.order, count: step.take + 1 });
}

function countOf(tx: Pick<WriteTransaction, "count">, step: RangeStep): number {
  const { index, bounds } = boundsOf(step);
  return tx.count(step.table, index, bounds);
}

function applyWrite(
  write: Write,
  { tx, model }: { readonly tx: WriteTransaction; readonly model: Model },
): void {
  if (write.do === "insert") {
    const id = tx.insert(write.table, write.fields);
    const doc = tx.get(id);
    assert.ok(doc !== null);
    model.set(write.table, doc);
    const { _id, _creationTime, ...stored } = doc;
    assert.deepEqual(stored, defined(write.fields));
    return;
  }
  const ids = model.ids(write.table);
  const id = ids[write.pick % Math.max(1, ids.length)];
  if (id === undefined) return;
  const doc = model.documents.get(id)?.doc;
  assert.ok(doc !== undefined);
  switch (write.do) {
    case "patch":
      tx.patch(id, write.fields);
      model.set(write.table, defined({ ...doc, ...write.fields }) as Doc);
      return;
    case "replace":
      tx.replace(id, write.fields);
      model.set(
        write.table,
        defined({ _id: doc._id, _creationTime: doc._creationTime, ...write.fields }) as Doc,
      );
      return;
    case "delete":
      tx.delete(id);
      model.delete(id);
      return;
    default:
      write satisfies never;
  }
}

/** Returns a copy as JSON has it: without undefined fields, -0 as 0. */
function defined(fields: Record<string, unknown>): Record<string, Value> {
  return JSON.parse(JSON.stringify(fields));
}

function runSteps(steps: readonly (typeof step extends fc.Arbitrary<infer T> ? T : never)[], at: {
  readonly tx: WriteTransaction;
  readonly model: Model;
}): void {
  const { tx, model } = at;
  const savepoints: {
    readonly savepoint: ReturnType<WriteTransaction["savepoint"]>;
    readonly before: Model["documents"];
  }[] = [];
  for (const step of steps) {
    switch (step.do) {
      case "scan": {
        const rows = [...scanOf(tx, step.range)].map(({ doc }) => doc);
        assert.deepEqual(rows, expectedRows(model, step.range));
        assert.deepEqual(firstOf(tx, step.range), rows.slice(0, step.range.take + 1));
        assert.equal(countOf(tx, step.range), rows.length);
        break;
      }
      case "loop": {
        // The rows are those of the start, even if the loop writes.
        const expected = expectedRows(model, step.range);
        const rows: Doc[] = [];
        for (const { doc } of scanOf(tx, step.range)) {
          const write = step.writes[rows.length];
          rows.push(doc);
          if (write !== undefined) applyWrite(write, at);
        }
        assert.deepEqual(rows, expected);
        break;
      }
      case "savepoint":
        savepoints.push({ savepoint: tx.savepoint(), before: model.documents });
        break;
      case "savepoint rollback": {
        const top = savepoints.pop();
        top?.savepoint.rollback();
        if (top !== undefined) model.documents = top.before;
        break;
      }
      case "savepoint release":
        savepoints.pop()?.savepoint.release();
        break;
      default:
        applyWrite(step, at);
    }
  }
}

/** Compares a commit entry with the documents before and after it. */
function checkEntry(entry: CommitEntry | null, documents: {
  readonly before: Model["documents"];
  readonly after: Model["documents"];
}): void {
  const { before, after } = documents;
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter((id) =>
    JSON.stringify(before.get(id)?.doc) !== JSON.stringify(after.get(id)?.doc)
  );
  assert.deepEqual((entry?.changes ?? []).map(({ id }) => id).sort(), changed.sort());
  for (const { id, doc } of entry?.changes ?? []) {
    assert.deepEqual(doc === null ? null : JSON.parse(doc ?? ""), after.get(id)?.doc ?? null);
  }
}

Deno.test("random histories match the model, and read sets detect exactly the changes of their results", () => {
  fc.assert(
    fc.property(fc.array(fields, { maxLength: 25 }), history, (prefilled, groups) => {
      using db = new TestDatabase(tables);
      const model = new Model();
      db.commit((tx) => {
        for (const fields of prefilled) applyWrite({ do: "insert", table: "items", fields }, { tx, model });
      });
      let ts = db.writer.ts;
      let watched: {
        readonly step: RangeStep;
        readonly rows: string;
        readonly readSet: ReadSet;
        readonly ended: boolean;
        readonly counted: ReturnType<typeof watchCount>;
      }[] = [];
      for (const group of groups) {
        const entries: CommitEntry[] = [];
        const atGroup = { documents: model.documents, ts };
        db.writer.openGroup();
        for (const { steps, end } of group.mutations) {
          const before = model.documents;
          const tx = db.writer.beginMutation({ at: db.now++ });
          runSteps(steps, { tx, model });
          if (end === "rollback") {
            db.writer.rollbackMutation();
            model.documents = before;
          } else {
            const entry = db.writer.releaseMutation();
            checkEntry(entry, { before, after: model.documents });
            if (entry !== null) {
              assert.equal(entry.ts, ++ts);
              entries.push(entry);
            }
          }
          assert.equal(db.writer.ts, ts);
        }
        if (group.end === "rollback") {
          db.writer.rollbackGroup();
          model.documents = atGroup.documents;
          ts = atGroup.ts;
          entries.length = 0;
        } else {
          db.writer.commitGroup(`group ${ts}`);
        }
        if (group.end === "reopen") db.reopen();
        assert.equal(db.writer.ts, ts);
        assert.equal(db.reader.openSnapshot(), ts);

        // Reads before the group are exact up to where each run stopped.
        for (const { step, rows, readSet, ended, counted } of watched) {
          const touched = entries.some((entry) => readSetTouches(readSet, entry));
          const [now] = watch(db, step);
          if (!touched) assert.equal(now, rows, "a result changed though its read set was not touched");
          if (ended && now !== rows) assert.ok(touched);
          if (watchCount(db, step).count !== counted.count) {
            assert.ok(entries.some((entry) => readSetTouches(counted.readSet, entry)));
          }
        }
        watched = group.watched.map((step) => {
          const [rows, readSet, ended] = watch(db, step);
          return { step, rows, readSet, ended, counted: watchCount(db, step) };
        });
        for (const { step, rows, counted } of watched) {
          const expected = expectedRows(model, step);
          assert.deepEqual(JSON.parse(rows), expected.slice(0, step.take));
          assert.equal(counted.count, expected.length);
        }
        // All documents are found by id, and no others.
        const view = db.reader.beginQuery();
        for (const [id, { table, doc }] of model.documents) {
          assert.deepEqual(view.get(id), doc);
          assert.equal(view.tableOf(id), table);
        }
        for (const name of Object.keys(tables)) {
          const ids = [...view.scan(name, "by_id", { eq: [] }, { order: "asc" })].map(({ doc }) => doc._id);
          assert.deepEqual(ids, model.ids(name).sort());
        }
        db.reader.closeSnapshot();
      }
    }),
    { numRuns: 200 },
  );
});

/** Returns the first rows of a range in the open snapshot. */
function watch(db: TestDatabase, step: RangeStep): [rows: string, readSet: ReadSet, ended: boolean] {
  const view = db.reader.beginQuery();
  const rows: Doc[] = [];
  let ended = step.take > 0;
  if (step.take > 0) {
    for (const { doc } of scanOf(view, step)) {
      rows.push(doc);
      if (rows.length === step.take) {
        ended = false;
        break;
      }
    }
  }
  return [JSON.stringify(rows), view.readSet(), ended];
}

/** Counts a range in the open snapshot. */
function watchCount(
  db: TestDatabase,
  step: RangeStep,
): { readonly count: number; readonly readSet: ReadSet } {
  const view = db.reader.beginQuery();
  const count = countOf(view, step);
  assert.deepEqual([view.usage.documentsRead, view.usage.indexRowsRead], [0, count]);
  return { count, readSet: view.readSet() };
}
