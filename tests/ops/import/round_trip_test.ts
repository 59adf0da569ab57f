/** Exports are imported unchanged. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { z } from "zod";
import { defineTable, id } from "../../../mod/functions/api/mod.ts";
import { textOf } from "../export/support.ts";
import { ImportWorld, source } from "./support/import_world.ts";

const tables = () => ({
  users: defineTable({ name: z.string() }),
  things: defineTable({
    text: z.string(),
    number: z.number(),
    flag: z.boolean(),
    list: z.array(z.union([z.string(), z.number()])),
    object: z.object({ deep: z.object({ a: z.number().nullable() }) }),
    any: z.any().optional(),
    maybe: z.string().optional(),
    nothing: z.string().nullable(),
    owner: id("users").nullish(),
    either: z.union([z.number(), z.string()]),
  }).index("by_number", ["number"]),
});

for (const format of ["jsonl", "csv"] as const) {
  Deno.test(`[IM10] exported ${format} is imported as the same documents`, async () => {
    await using from = new ImportWorld(tables());
    const owner = await from.insert("users", { name: "Ann" });
    const plain = {
      text: "",
      number: -0.1,
      flag: false,
      list: [],
      object: { deep: { a: null } },
      nothing: null,
      either: "4.20",
      // CSV does not distinguish missing values from null.
      ...(format === "csv" && { any: null, owner: null }),
    };
    await from.insert("things", plain);
    await from.insert("things", {
      ...plain,
      text: ' a "quoted", text\r\nof\nlines = +1 ; \t €𝄞 ',
      number: 1e21,
      flag: true,
      list: ["1", 2, "x"],
      any: { b: [1, null] },
      maybe: "null",
      owner,
      either: 42,
    });
    await from.insert("things", { ...plain, text: "42", maybe: "x", nothing: "true", any: "some text" });
    const path = join(from.dir, "data.db");
    await using to = new ImportWorld(tables());
    for (const table of ["users", "things"]) {
      await to.import(source(table, textOf(path, format, table), { format }));
      assert.deepEqual(await to.rows(table), await from.rows(table));
      assert.equal(textOf(join(to.dir, "data.db"), format, table), textOf(path, format, table));
    }
  });
}
