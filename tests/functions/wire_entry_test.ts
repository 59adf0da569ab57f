import assert from "node:assert/strict";
import fc from "fast-check";
import type { CommitEntry, DocumentChange, KeyChange } from "../../mod/engine/types.ts";
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
const state = fc.option(fieldsKey, { nil: null });

/** The keys of one document in its id space, its index by creation time and one more index. */
const change = fc.tuple(state, state, fc.boolean()).filter(([before, after]) =>
  before !== null || after !== null
).map(([before, after, system]): DocumentChange => {
  const key = (fields: string | null) => fields === null ? null : fields + CREATED + ID;
  const exists = (fields: string | null, value: string) => fields === null ? null : value;
  const keys: KeyChange[] = [
    ["t1", exists(before, ID), exists(after, ID)],
    ["i1", exists(before, CREATED + ID), exists(after, CREATED + ID)],
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

Deno.test("a commit entry arrives as it was sent", () => {
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

Deno.test("documents of the app's tables stay behind, those of the service travel", () => {
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
