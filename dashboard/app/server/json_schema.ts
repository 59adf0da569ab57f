/** Validation, examples and descriptions for the subset of JSON Schema used by tables and arguments. */
export type Schema = Readonly<Record<string, unknown>>;

export interface Issue {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const alternativesOf = (schema: Schema): readonly Schema[] | null => {
  const any = schema["anyOf"] ?? schema["oneOf"];
  return Array.isArray(any) ? any as Schema[] : null;
};

export function propertiesOf(schema: Schema | null): Readonly<Record<string, Schema>> {
  const properties = schema?.["properties"];
  return isObject(properties) ? properties as Record<string, Schema> : {};
}

export const requiredOf = (schema: Schema | null): readonly string[] =>
  Array.isArray(schema?.["required"]) ? schema["required"] as string[] : [];

export function propertyNames(schema: Schema): string[] {
  const found = new Set<string>();
  const walk = (part: unknown): void => {
    if (Array.isArray(part)) return part.forEach(walk);
    if (!isObject(part)) return;
    for (const [name, inner] of Object.entries(propertiesOf(part))) {
      found.add(name);
      walk(inner);
    }
    for (const key of ["items", "anyOf", "oneOf", "allOf", "additionalProperties"]) walk(part[key]);
  };
  walk(schema);
  return [...found];
}

/** Describes a type, such as `string` or `id of users`. */
export function typeText(schema: Schema): string {
  if (schema["format"] === "id") return `id of ${String(schema["x-table"] ?? "a document")}`;
  if ("const" in schema) return JSON.stringify(schema["const"]);
  if (Array.isArray(schema["enum"])) return schema["enum"].map((value) => JSON.stringify(value)).join(" | ");
  const alternatives = alternativesOf(schema);
  if (alternatives !== null) return alternatives.map(typeText).join(" | ");
  if (schema["type"] === "array") return `${typeText(isObject(schema["items"]) ? schema["items"] : {})}[]`;
  return typeof schema["type"] === "string" ? schema["type"] : "any";
}

/** Returns the table that an ID refers to, or `null` if the schema is not an ID. */
export function tableOf(schema: Schema | undefined): string | null {
  if (schema === undefined) return null;
  if (schema["format"] === "id") return typeof schema["x-table"] === "string" ? schema["x-table"] : null;
  return alternativesOf(schema)?.map(tableOf).find((table) => table !== null) ?? null;
}

/** Whether the schema accepts `null`. */
export const isNullable = (schema: Schema): boolean =>
  schema["type"] === "null" || (alternativesOf(schema)?.some(isNullable) ?? false);

/** Strips `null` from a union. Returns the schema itself if several alternatives remain. */
export function plainOf(schema: Schema): Schema {
  const others = alternativesOf(schema)?.filter((one) => one["type"] !== "null") ?? [];
  const [only] = others;
  return others.length === 1 && only !== undefined ? only : schema;
}

/** Returns the allowed constants without `null`; `null` if the schema is not a choice of constants. */
export function choicesOf(schema: Schema): readonly unknown[] | null {
  const plain = plainOf(schema);
  if ("const" in plain) return [plain["const"]];
  if (Array.isArray(plain["enum"])) return plain["enum"];
  const alternatives = alternativesOf(plain)?.filter((one) => one["type"] !== "null") ?? [];
  if (alternatives.length === 0 || !alternatives.every((one) => "const" in one)) return null;
  return alternatives.map((one) => one["const"]);
}

/** Returns an initial value with required fields only. */
export function initialValueOf(schema: Schema | null): unknown {
  if (schema === null) return undefined;
  if ("default" in schema) return schema["default"];
  if ("const" in schema) return schema["const"];
  if (Array.isArray(schema["enum"])) return schema["enum"][0];
  const [first] = alternativesOf(schema) ?? [];
  if (first !== undefined) return initialValueOf(first);
  switch (schema["type"]) {
    case "object": {
      const properties = propertiesOf(schema);
      const filled = requiredOf(schema).map((name) => [name, initialValueOf(properties[name] ?? {}) ?? null]);
      return Object.fromEntries(filled);
    }
    case "array":
      return [];
    case "string":
      return "";
    case "number":
    case "integer":
      return 0;
    case "boolean":
      return false;
    default:
      return null;
  }
}

/** Deeper values are validated by the server only. */
const DEPTH_MAX = 12;

/** Validates a value for inline hints. The server's validation is authoritative. */
export function issuesOf(value: unknown, schema: Schema, path: Issue["path"] = []): Issue[] {
  if (path.length > DEPTH_MAX) return [];
  const alternatives = alternativesOf(schema);
  if (alternatives !== null) {
    return alternatives.some((one) => issuesOf(value, one, path).length === 0)
      ? []
      : [{ path, message: `should be ${typeText(schema)}` }];
  }
  if ("const" in schema && value !== schema["const"]) {
    return [{ path, message: `should be ${typeText(schema)}` }];
  }
  if (Array.isArray(schema["enum"]) && !schema["enum"].includes(value)) {
    return [{ path, message: `should be ${typeText(schema)}` }];
  }
  if (!fitsType(value, schema["type"])) return [{ path, message: `should be ${typeText(schema)}` }];
  if (schema["type"] === "array" && Array.isArray(value) && isObject(schema["items"])) {
    const items = schema["items"];
    return value.flatMap((item, position) => issuesOf(item, items, [...path, position]));
  }
  return isObject(value) && schema["type"] === "object" ? objectIssues(value, schema, path) : [];
}

function objectIssues(
  value: Readonly<Record<string, unknown>>,
  schema: Schema,
  path: Issue["path"],
): Issue[] {
  const properties = propertiesOf(schema);
  const missing = requiredOf(schema).filter((name) => !(name in value))
    .map((name) => ({ path: [...path, name], message: "is required" }));
  const wrong = Object.entries(value).flatMap(([name, field]) => {
    const inner = properties[name];
    if (inner !== undefined) return issuesOf(field, inner, [...path, name]);
    const more = schema["additionalProperties"];
    if (isObject(more)) return issuesOf(field, more, [...path, name]);
    return more === false ? [{ path: [...path, name], message: "is not a field of this object" }] : [];
  });
  return [...missing, ...wrong];
}

function fitsType(value: unknown, type: unknown): boolean {
  switch (type) {
    case "object":
      return isObject(value);
    case "array":
      return Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    case "null":
      return value === null;
    case "string":
      return typeof value === "string";
    case "number":
      return typeof value === "number";
    case "boolean":
      return typeof value === "boolean";
    default:
      return true;
  }
}
