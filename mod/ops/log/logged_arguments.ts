/**
 * Arguments of runs in the execution log (`--log-args`): short JSON without the values that their schemas mark with
 * `.meta({ redact: true })`. Functions without a schema of their arguments are logged without them.
 */
import type { JsonSchema } from "../../functions/api/service.ts";
import type { RunEnd } from "../../functions/host/mod.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import { system } from "../admin/system.ts";
import { logLimits } from "../limits.ts";

export interface ArgumentSchemas {
  /** The served version of the code. */
  readonly version: () => unknown;
  readonly calls: SystemCalls;
}

/** Formats the arguments of runs. Nothing is logged while the schemas of the served version are not known. */
export class LoggedArguments {
  readonly #log: Log;
  #source: ArgumentSchemas | null = null;
  #enabled = false;
  #known: { readonly version: unknown; readonly rules: ReadonlyMap<string, Redaction> } | null = null;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Sets where the schemas are read. */
  connect(source: ArgumentSchemas): void {
    this.#source = source;
  }

  enable(enabled: boolean): void {
    const before = this.#enabled;
    this.#enabled = enabled;
    if (enabled && !before) this.reload();
  }

  /** Reads the schemas of the served version. */
  reload(): void {
    if (!this.#enabled || this.#source === null) return;
    const { version, calls } = this.#source;
    const loading = version();
    calls.query(system.argsSchemas, {}).then((found) => {
      if (version() !== loading) return;
      const known = Object.entries(found).filter(([, schema]) => schema["type"] === "object");
      this.#known = {
        version: loading,
        rules: new Map(known.map(([path, schema]) => [path, redactionOf(schema)])),
      };
    }).catch((error) => {
      this.#log("warn", "Arguments are not logged: cannot read the schemas of functions", { error });
    });
  }

  /** Returns the arguments of a run as JSON, or `null` if they are not logged. */
  of({ udfPath, args }: RunEnd["call"], outcome: RunEnd["outcome"]): string | null {
    const known = this.#known;
    if (!this.#enabled || args === undefined || known === null) return null;
    if (known.version !== this.#source?.version()) return null;
    // Arguments that do not match the schema may have anything in any field.
    if (!outcome.ok && (outcome.error.kind === "args" || outcome.error.kind === "unknown_function")) {
      return null;
    }
    const rule = known.rules.get(udfPath);
    return rule === undefined ? null : redactedJson(args, rule);
  }
}

/** The redacted part of a value: all of it, or by field; `*` for all fields or items. `null` for nothing. */
export type Redaction = true | ReadonlyMap<string, Redaction> | null;

/** Schemas nested deeper are left out. */
const DEPTH_MAX = 32;
const REDACTED = "(redacted)";

/** Returns the values that a schema marks. Recursive schemas are left out from their second level on. */
export function redactionOf(schema: JsonSchema): Redaction {
  const definitions = (schema["$defs"] ?? {}) as Readonly<Record<string, unknown>>;
  const open = new Set<unknown>();
  const visit = (part: unknown, depth: number): Redaction => {
    if (typeof part !== "object" || part === null) return null;
    const node = part as JsonSchema;
    if (node["redact"] === true || depth > DEPTH_MAX || open.has(node)) return true;
    open.add(node);
    const { $ref, properties, patternProperties, additionalProperties, items, prefixItems } = node as {
      readonly [name: string]: unknown;
    };
    let found: Redaction = null;
    if (typeof $ref === "string") {
      const target = $ref === "#" ? schema : definitions[$ref.replace("#/$defs/", "")];
      // Nothing is known about the values of an unknown definition.
      found = target === undefined || visit(target, depth + 1);
    }
    const fields = new Map<string, Redaction>();
    const below = (name: string, inner: unknown) =>
      fields.set(name, merged(fields.get(name) ?? null, visit(inner, depth + 1)));
    for (const [name, inner] of Object.entries(properties ?? {})) below(name, inner);
    const others = [additionalProperties, items, ...listOf(prefixItems)];
    for (const inner of [...others, ...Object.values(patternProperties ?? {})]) below("*", inner);
    const named = [...fields].filter((entry): entry is [string, true | ReadonlyMap<string, Redaction>] =>
      entry[1] !== null
    );
    if (named.length > 0) found = merged(found, new Map(named));
    const { anyOf, oneOf, allOf } = node;
    for (const one of [anyOf, oneOf, allOf].flatMap(listOf)) found = merged(found, visit(one, depth + 1));
    open.delete(node);
    return found;
  };
  return visit(schema, 0);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function merged(a: Redaction, b: Redaction): Redaction {
  if (a === null || b === null) return a ?? b;
  if (a === true || b === true) return true;
  return new Map([
    ...a,
    ...[...b].map(([name, inner]) => [name, merged(a.get(name) ?? null, inner)] as const),
  ]);
}

/** Returns JSON of a value without what is redacted, up to the limit. Reads no more of the value than it returns. */
export function redactedJson(value: unknown, redaction: Redaction): string {
  const max = logLimits.argsCharsMax;
  let text = "";
  const write = (part: unknown, rule: Redaction): void => {
    if (text.length >= max) return;
    // A string in place of marked fields may contain them, such as the input of `z.preprocess`.
    if (rule === true || (rule !== null && typeof part === "string")) text += JSON.stringify(REDACTED);
    else if (typeof part === "string") text += JSON.stringify(part.slice(0, max - text.length));
    else if (Array.isArray(part)) {
      text += "[";
      for (const [at, item] of part.entries()) {
        if (text.length >= max) return;
        if (at > 0) text += ",";
        write(item, rule?.get("*") ?? null);
      }
      text += "]";
    } else if (typeof part === "object" && part !== null) {
      text += "{";
      let isFirst = true;
      for (const name in part) {
        if (text.length >= max) return;
        text += `${isFirst ? "" : ","}${JSON.stringify(name.slice(0, max))}:`;
        isFirst = false;
        write(
          (part as Record<string, unknown>)[name],
          merged(rule?.get(name) ?? null, rule?.get("*") ?? null),
        );
      }
      text += "}";
    } else text += JSON.stringify(part) ?? "null";
  };
  write(value, redaction);
  return text.length > max ? `${text.slice(0, max - 1)}…` : text;
}
