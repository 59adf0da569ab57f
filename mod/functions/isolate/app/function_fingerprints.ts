/** Fingerprints of functions, to show which ones a deploy changes. */
import { createHash } from "node:crypto";
import type { App } from "./app.ts";
import { jsonSchemaOf } from "./json_schema.ts";

const PRINT_CHARS = 12;

/** Returns a fingerprint of each app function by path, derived from its kind, schemas and source. */
export function functionFingerprints({ functions }: Pick<App, "functions">): Record<string, string> {
  const prints: Record<string, string> = {};
  for (const { udfPath, spec, system } of functions.values()) {
    if (system) continue;
    const { kind, visibility, args, returns, handler } = spec;
    const schemas = [args, returns].map((schema) => schema === null ? null : jsonSchemaOf(schema));
    prints[udfPath] = createHash("sha256")
      .update(JSON.stringify([kind, visibility, schemas, sourceOf(handler)])).digest("base64url")
      .slice(0, PRINT_CHARS);
  }
  return prints;
}

const { toString } = Function.prototype;

function sourceOf(handler: unknown): string {
  return String(Reflect.apply(toString, handler, []));
}
