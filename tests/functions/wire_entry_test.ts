import assert from "node:assert/strict";
import fc from "fast-check";
import type { CommitEntry, DocumentChange, KeyChange } from "../../mod/engine/types.ts";
import { type JournalRow, newId } from "../../mod/engine/mod.ts";
import { AppliedGroup, packApplied, type WireApplied } from "../../mod/functions/wire/applied_rows.ts";
import { EntryPacker, unpackEntries, type WireEntries } from "../../mod/functions/wire/packed_entry.ts";

const ID = "0001aaaaaaaaaaaaaaaaaaaa00";
const CREATED = "3wxyz ";

function packed(entries: readonly CommitEntry[]): string {
  const packer = new EntryPacker();
  for (const entry of entries) packer.add(entry);
  return JSON.stringify({ tables: packer.tables, entries: packer.entries });
}

function travelled(entries: readonly CommitEntry[]): CommitEntry[] {
  return unpackEntries(JSON.parse(packed(entries)) as WireEntries);
}

const fieldsKey = fc.string({ unit: "grapheme-ascii" });
/** Keys of numbers differ in length. */
const tail = fc.constantFrom(CREATED, "2w ", "4wxyzabc ");
const state = fc.option(fc.record({ fields: fieldsKey, tail }), { nil: null });
type State = { readonly fields: string; readonly tail: string } | null;

/** The keys of one document in its id space, its index by creation time and one more index. */
const change = fc.tuple(state, state, fc.boolean()).filter(([before, after]) =>
  before !== null || after !== null
).map(([before, after, system]): DocumentChange => {
  const key = (state: State) => state && state.fields + state.tail + ID;
  const exists = (state: State, value: string) => state && value;
  const keys: KeyChange[] = [
    ["t1", exists(before, ID), exists(after, ID)],
    ["i1", before && before.tail + ID, after && after.tail + ID],
    ["i2", key(before), key(after)],
    ["s3", exists(before, ""), exists(after, "")],
  ];
  return {
    table: system ? "_users" : "users",
    tableNumber: system ? 1 : 2,
    id: ID,
    keys,
    ...(system ? { doc: after === null ? null : JSON.stringify({ after }) } : {}),
  };
});

Deno.test("a commit entry is decoded without changes", () => {
  fc.assert(
    fc.property(fc.array(fc.array(change)), (commits) => {
      const entries = commits.map((changes, n): CommitEntry => ({
        ts: 7 + n,
        at: 1_700_000_000_000.5,
        changes,
      }));
      assert.deepEqual(travelled(entries), entries);
    }),
    { numRuns: 2000 },
  );
});

Deno.test("a document that an import has made older or newer is published with both its times", () => {
  for (const [from, to] of [[CREATED, "2w "], ["2w ", CREATED], ["a", "b"]]) {
    const keys: KeyChange[] = [
      ["t1", ID, ID],
      ["i1", from + ID, to + ID],
      ["i2", `x ${from}${ID}`, `x ${to}${ID}`],
    ];
    const entry: CommitEntry = { ts: 1, at: 2, changes: [{ table: "users", tableNumber: 1, id: ID, keys }] };
    assert.deepEqual(travelled([entry]), [entry]);
  }
});

Deno.test("documents of the app's tables are not sent, those of the service are", () => {
  const keys: KeyChange[] = [["t1", null, ID], ["i1", null, CREATED + ID]];
  const at = (table: string): DocumentChange => ({ table, tableNumber: 1, id: ID, keys, doc: "{}" });
  const [entry] = travelled([{ ts: 1, at: 2, changes: [at("users"), { ...at("_users"), tableNumber: 2 }] }]);
  assert.deepEqual(entry?.changes.map(({ doc }) => doc), [undefined, "{}"]);
});

Deno.test("an unchanged document of two indexes travels in under 100 characters", () => {
  const key = `3-_abcdef ${CREATED}${ID}`;
  const keys: KeyChange[] = [["t1", ID, ID], ["i1", CREATED + ID, CREATED + ID], ["i2", key, key]];
  const entry: CommitEntry = { ts: 1, at: 1, changes: [{ table: "accounts", tableNumber: 1, id: ID, keys }] };
  const chars = packed([entry, entry]).length - packed([entry]).length;
  assert.ok(chars < 100, `${chars} characters`);
});

Deno.test("applied rows contain only what cannot be derived, and each change its own keys", () => {
  const ids = [newId(1), newId(1), newId(1), newId(2)] as const;
  const [kept, moved, gone, ofService] = ids;
  const text = (id: string, n: number) => JSON.stringify({ _id: id, _creationTime: 5, n });
  const head = {
    e: [[10, [kept, gone]], [11, [moved, `-${gone}`]], [12, [ofService]]],
    s: [1, 3, 1],
    t: 5,
  };
  const lines = [text(kept, 1), text(gone, 2), text(moved, 3), text(ofService, 4)];
  const row: JournalRow = {
    ...{ seq: 1, tsBefore: 6, ts: 9, at: 12, sum: "" },
    body: [JSON.stringify(head), ...lines].join("\n"),
  };
  const byCreation = { space: "i1", paths: [] };
  const tables = [
    { name: "users", number: 1, space: "t1", indexes: [byCreation, { space: "i2", paths: [["n"]] }] },
    { name: "_users", number: 2, space: "t2", indexes: [{ space: "i3", paths: [] }] },
  ];
  const movedKeys: KeyChange[] = [
    ["t1", moved, moved],
    ["i1", CREATED + moved, CREATED + moved],
    ["i2", `a${CREATED}${moved}`, `b${CREATED}${moved}`],
    ["s3", "", ""],
  ];
  const deletedKeys: KeyChange[] = [
    ["t1", null, gone],
    ["i1", null, CREATED + gone],
    ["i2", null, `c${CREATED}${gone}`],
  ];
  const changes = [
    { table: "users", tableNumber: 1, id: gone, keys: deletedKeys },
    { table: "users", tableNumber: 1, id: moved, keys: movedKeys },
    {
      table: "users",
      tableNumber: 1,
      id: gone,
      keys: deletedKeys.map(([space, before, after]): KeyChange => [space, after, before]),
    },
  ];
  const travelling = JSON.stringify(packApplied({ tables, changes }));
  for (const id of [kept, ofService]) assert.ok(!travelling.includes(id));
  const group = new AppliedGroup([row], JSON.parse(travelling));
  assert.deepEqual([group.ts, group.count, group.changesSystemTables], [9, 3, true]);
  assert.deepEqual(group.keySpaces, new Set(["t1", "i1", "i2", "t2", "i3", "s3"]));
  const entries = group.entries();
  assert.deepEqual(entries.map(({ ts, at }) => [ts, at]), [[7, 10], [8, 11], [9, 12]]);
  const [first, second, third] = entries.map(({ changes }) => changes);
  assert.deepEqual(first?.map(({ table, id }) => [table, id]), [["users", kept], ["users", gone]]);
  assert.ok(
    first?.[0]?.unchanged !== undefined && first[0].keys.every(([, before, after]) => before === after),
  );
  assert.deepEqual(second?.map(({ id, doc }) => [id, doc]), [[moved, undefined], [gone, undefined]]);
  assert.deepEqual(second?.[0]?.keys, movedKeys);
  assert.deepEqual([first[1]?.keys, second[1]?.keys], [deletedKeys, changes[2]?.keys]);
  assert.deepEqual(third?.map(({ table, doc }) => [table, doc]), [["_users", text(ofService, 4)]]);
  assert.equal(third?.[0]?.keys[0]?.[1], ofService);
  const entriesOf = (applied: WireApplied) => () => new AppliedGroup([row], applied).entries();
  assert.throws(entriesOf({ ...JSON.parse(travelling), tables: [] }), /not in the reported changes/);
  assert.throws(
    entriesOf({ tables, changed: { tables: [], entries: [] } }),
    /not in the reported changes/,
  );
  assert.throws(
    entriesOf(packApplied({ tables, changes: changes.slice(0, 2) })),
    /has changed document ".*", which is not in the reported changes/,
  );
});
