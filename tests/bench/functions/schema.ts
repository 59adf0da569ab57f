/** Tables of the benchmark's rows other than the transfers. */
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";

export default defineSchema({
  rows: defineTable({ number: z.int(), value: z.number(), text: z.string() }).index("by_number", ["number"]),
});
