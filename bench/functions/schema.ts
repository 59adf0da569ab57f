/** Tables of all rows other than transfers. */
import { createFunctions, defineSchema, defineTable } from "syncline/server";
import { z } from "zod";

const score = { game: z.string(), points: z.number() };

const schema = defineSchema({
  rows: defineTable({ number: z.int(), value: z.number(), text: z.string() }).index("by_number", ["number"]),
  members: defineTable({ room: z.int(), member: z.int() }).index("by_room", ["room", "member"]),
  scores: defineTable(score).index("by_game", ["game", "points"])
    .aggregate("by_points", { by: ["game", "points"], sum: ["points"] }),
  plainScores: defineTable(score).index("by_game", ["game", "points"]),
  streams: defineTable({ stream: z.string() }),
  messages: defineTable({ room: z.int(), member: z.int(), text: z.string() }).index("by_room", ["room"]),
});

export default schema;
export const { query, mutation, action, internalQuery, internalMutation } = createFunctions(schema);
