/** Converts zod schemas to JSON Schema, for forms and editors that do not run app code. */
import { z } from "zod";
import type { JsonSchema } from "../../api/system_context.ts";
import { idSchemaTable } from "../../api/schema_fingerprint.ts";

const schemas = new WeakMap<z.ZodType, JsonSchema>();

/** Returns the JSON Schema of the input type. Omits what JSON Schema cannot express. */
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
    // A schema may run app code that throws.
    return {};
  }
}
