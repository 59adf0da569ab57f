import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";

export default defineSchema({ notes: defineTable({ text: z.string() }) });
