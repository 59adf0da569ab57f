import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";

export default defineSchema({
  runs: defineTable({ round: z.int(), n: z.int() }).index("by_round", ["round"]),
  begun: defineTable({ round: z.int(), n: z.int() }).index("by_round", ["round"]),
  ended: defineTable({ round: z.int(), n: z.int() }).index("by_round", ["round"]),
});
