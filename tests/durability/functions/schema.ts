/** Tables whose documents must agree with one another after any crash. */
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";

const entry = { writer: z.int(), sequence: z.int() };

export default defineSchema({
  /** Each append writes the same document here and in `rights`. */
  lefts: defineTable(entry).index("by_writer", ["writer", "sequence"]),
  rights: defineTable(entry).index("by_writer", ["writer", "sequence"]),
  /** Number of appends of each writer. */
  counters: defineTable({ writer: z.int(), count: z.int() }).index("by_writer", ["writer"]),
  /** One document: the number of all appends. */
  totals: defineTable({ count: z.int() }),
  /** Two documents, `a` and `b`, whose amounts always have the same sum. */
  amounts: defineTable({ name: z.string(), amount: z.int() }).index("by_name", ["name"]),
});
