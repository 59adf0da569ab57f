/**
 * Canonical JSON, which identifies a query together with its function path (QI1). Shared by client and server.
 * Browser-safe.
 */

/**
 * JSON text of a value with the keys of every object sorted by UTF-16 code units. The value is one that came from JSON:
 * plain objects, arrays, strings, finite numbers, booleans and null. Fields that are `undefined` are left out.
 * Throws `TypeError` for anything else.
 *
 * @example
 * ```ts
 * canonicalJson({ b: 1, a: [true] }); // '{"a":[true],"b":1}'
 * ```
 */
export function canonicalJson(value: unknown): string {
  switch (typeof value) {
    case "string":
    case "boolean":
      return JSON.stringify(value);
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`Cannot write ${value} as JSON`);
      return JSON.stringify(value);
    case "object":
      if (value === null) return "null";
      return Array.isArray(value)
        ? `[${value.map(canonicalJson).join(",")}]`
        : canonicalObject(value as Record<string, unknown>);
    default:
      throw new TypeError(`Cannot write a ${typeof value} as JSON`);
  }
}

function canonicalObject(object: Record<string, unknown>): string {
  let text = "";
  for (const key of Object.keys(object).sort()) {
    const value = object[key];
    if (value === undefined) continue;
    text += `${text === "" ? "" : ","}${JSON.stringify(key)}:${canonicalJson(value)}`;
  }
  return `{${text}}`;
}
