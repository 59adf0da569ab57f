/** What zod schemas say, as JSON Schema: for forms and editors, which do not run code of the app. */
import { z } from "zod";
import type { JsonSchema } from "../../api/system_context.ts";
import { idSchemaTable } from "../../api/schema_fingerprint.ts";

const schemas = new WeakMap<z.ZodType, JsonSchema>();

/** The JSON Schema of what a schema accepts. What JSON Schema cannot say is left open. */
export function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  const known = schemas.get(schema);
  if (known !== undefined) return known;
  const made = convert(schema);
  schemas.set(schema, made);
  return made;
}

function convert(schema: z.ZodType): JsonSchema {
  try {
    return z.toJSONSchema(schema, {
      io: "input",
      unrepresentable: "any",
      cycles: "ref",
      override({ zodSchema, jsonSchema }) {
        const table = idSchemaTable(zodSchema);
        if (table === undefined) return;
        jsonSchema.type = "string";
        jsonSchema.format = "id";
        jsonSchema["x-table"] = table;
      },
    }) as JsonSchema;
  } catch {
    // Code of the app may stand in a schema; one that cannot be told still takes what it takes.
    return {};
  }
}
