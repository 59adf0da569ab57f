/** Makes example values for JSON Schemas. */
import type { JsonSchema } from "../functions/api/service.ts";

const DEPTH_MAX = 8;
const ITEMS_MAX = 3;

/** Example strings by format. */
const FORMATS: Readonly<Record<string, string>> = {
  "date": "2030-01-02",
  "date-time": "2030-01-02T14:02:00Z",
  "duration": "PT15M",
  "email": "ada@example.com",
  "ipv4": "192.0.2.1",
  "ipv6": "2001:db8::1",
  "time": "14:02:00",
  "uri": "https://example.com",
  "uuid": "1b671a64-40d5-491e-99b0-da01ff1f3341",
};

type Resolve = (ref: string) => JsonSchema | undefined;

/** Returns a value that matches the schema, or `undefined` if none can be made, such as for a pattern. */
export function exampleOf(schema: JsonSchema, resolve: Resolve, depth = 0): unknown {
  if (depth > DEPTH_MAX) return undefined;
  const { examples, enum: choices, anyOf, oneOf, allOf, $ref } = schema;
  if (Array.isArray(examples) && examples.length > 0) return examples[0];
  if (Object.hasOwn(schema, "default")) return schema["default"];
  if (Object.hasOwn(schema, "const")) return schema["const"];
  if (Array.isArray(choices)) return choices[0];
  const inner = (part: JsonSchema) => exampleOf(part, resolve, depth + 1);
  if (typeof $ref === "string") return inner(resolve($ref) ?? {});
  const options = (anyOf ?? oneOf) as readonly JsonSchema[] | undefined;
  if (options !== undefined) return options.map(inner).find((value) => value !== undefined);
  if (Array.isArray(allOf)) {
    const parts = allOf.map(inner);
    return parts.every(isObject) ? Object.assign({}, ...parts) : undefined;
  }
  return exampleOfType(schema, inner);
}

function exampleOfType(schema: JsonSchema, inner: (part: JsonSchema) => unknown): unknown {
  const [type] = [schema["type"]].flat();
  switch (type) {
    case "string":
      return exampleString(schema);
    case "integer":
    case "number":
      return exampleNumber(schema);
    case "boolean":
      return true;
    case "array":
      return exampleArray(schema, inner);
    case "object":
      return exampleObject(schema, inner);
    default:
      return null;
  }
}

function exampleString(
  { format, pattern, minLength = 0, maxLength = Infinity, ...rest }: JsonSchema,
): unknown {
  if (format === "id") return `id of ${rest["x-table"] ?? "a document"}`;
  const known = typeof format === "string" ? FORMATS[format] : undefined;
  if (known !== undefined) return known;
  if (pattern !== undefined || format !== undefined) return undefined;
  const text = "text".padEnd(Math.min(Number(minLength), 1000), "text");
  return text.length < Number(minLength) ? undefined : text.slice(0, Number(maxLength));
}

/** The number closest to one that the bounds permit; `undefined` if none of the tried ones is. */
function exampleNumber(schema: JsonSchema): unknown {
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum, multipleOf } = schema;
  const step = Number(multipleOf ?? 1);
  const above = Math.max(Number(minimum ?? -Infinity), Number(exclusiveMinimum ?? -Infinity) + step);
  const below = Math.min(Number(maximum ?? Infinity), Number(exclusiveMaximum ?? Infinity) - step);
  const tried = [step, Math.ceil(above / step) * step, Math.floor(below / step) * step];
  return tried.find((value) => Number.isFinite(value) && value >= above && value <= below);
}

function exampleArray(schema: JsonSchema, inner: (part: JsonSchema) => unknown): unknown {
  const { prefixItems, items, minItems = 0, maxItems = Infinity } = schema;
  if (Array.isArray(prefixItems)) return whole(prefixItems.map(inner));
  if (Number(minItems) > ITEMS_MAX) return undefined;
  if (Number(maxItems) === 0) return [];
  const item = inner((items ?? {}) as JsonSchema);
  if (item === undefined) return Number(minItems) === 0 ? [] : undefined;
  return Array.from({ length: Math.max(1, Number(minItems)) }, () => item);
}

/** With the required fields only. */
function exampleObject(schema: JsonSchema, inner: (part: JsonSchema) => unknown): unknown {
  const { properties = {}, required = [] } = schema;
  const fields = properties as Record<string, JsonSchema>;
  const names = required as readonly string[];
  const values = whole(names.map((name) => inner(fields[name] ?? {})));
  return values && Object.fromEntries(names.map((name, i) => [name, values[i]]));
}

function whole(values: readonly unknown[]): readonly unknown[] | undefined {
  return values.includes(undefined) ? undefined : values;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
