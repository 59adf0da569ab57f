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

/** Whether a schema has `.meta({ redact: true })`. Only the schema can find it, in the registry of the app's zod. */
function isRedacted(schema: object): boolean {
  const { meta } = schema as { readonly meta?: () => { readonly redact?: unknown } | undefined };
  return typeof meta === "function" && Reflect.apply(meta, schema, [])?.redact === true;
}

function convert(schema: z.ZodType): JsonSchema {
  try {
    return z.toJSONSchema(schema, {
      io: "input",
      unrepresentable: "any",
      cycles: "ref",
      override({ zodSchema, jsonSchema }) {
        if (isRedacted(zodSchema)) jsonSchema["redact"] = true;
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
