/** Schemas: strictness, messages, names, and the fingerprint that saves checking stored documents again. */
import assert from "node:assert/strict";
import { z } from "zod";
import { schemaDefinition } from "../../../mod/functions/api/schema.ts";
import { defineSchema, defineTable, id } from "../../../mod/functions/api/mod.ts";
import type { TableShape } from "../../../mod/functions/api/schema.ts";

function definition(shape: TableShape) {
  return schemaDefinition(defineSchema({ t: defineTable(shape) }))?.get("t") ?? assert.fail();
}

