/** Moves JSON Schemas into the `components` of one document: unique names, and references that point there. */
import type { JsonSchema } from "../functions/api/service.ts";

/** Keywords whose values are data. */
const VALUES = new Set(["const", "default", "enum", "examples"]);
/** Keywords with schemas by name. */
const NAMED = new Set(["properties", "patternProperties"]);

export class ComponentSchemas {
  readonly #schemas = new Map<string, JsonSchema>();

  /** Schemas by component name. */
  get all(): Readonly<Record<string, JsonSchema>> {
    return Object.fromEntries(this.#schemas);
  }

  /** Adds a schema with its definitions. Returns a reference to it. */
  add(wanted: string, schema: JsonSchema): { readonly $ref: string } {
    const name = this.#free(wanted);
    this.#schemas.set(name, {});
    const { $schema: _, $defs = {}, ...own } = schema;
    const names = new Map<string, string>();
    for (const key of Object.keys($defs as object)) {
      const free = this.#free(`${name}.${componentName(key)}`);
      this.#schemas.set(free, {});
      names.set(key, free);
    }
    const rename = (ref: string): string => {
      const target = ref === "#" ? name : names.get(ref.replace(/^#\/\$defs\//, ""));
      return target === undefined ? ref : refTo(target);
    };
    this.#schemas.set(name, moved(own, rename) as JsonSchema);
    for (const [key, definition] of Object.entries($defs as Record<string, JsonSchema>)) {
      this.#schemas.set(names.get(key) ?? name, moved(definition, rename) as JsonSchema);
    }
    return { $ref: refTo(name) };
  }

  /** Resolves a reference of this document; `undefined` for others. */
  resolve(ref: string): JsonSchema | undefined {
    return this.#schemas.get(ref.slice(refTo("").length));
  }

  #free(wanted: string): string {
    let name = wanted;
    for (let count = 2; this.#schemas.has(name); count++) name = `${wanted}.${count}`;
    return name;
  }
}

/** Returns the component name of a function path or key, such as `tasks.list` for `tasks:list`. */
export function componentName(path: string): string {
  return path.replaceAll(/[/:]/g, ".").replaceAll(/[^A-Za-z0-9._-]/g, "_");
}

function refTo(name: string): string {
  return `#/components/schemas/${name}`;
}

/** Returns a copy of a schema, or of an array of them, with renamed references. */
function moved(value: unknown, rename: (ref: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => moved(item, rename));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([keyword, inner]) => {
      if (VALUES.has(keyword)) return [keyword, inner];
      if (keyword === "$ref") return [keyword, rename(String(inner))];
      if (!NAMED.has(keyword)) return [keyword, moved(inner, rename)];
      const schemas = Object.entries(inner as object).map(([name, schema]) => [name, moved(schema, rename)]);
      return [keyword, Object.fromEntries(schemas)];
    }),
  );
}
