/** Code that calls a function, to be copied into an app or a terminal. */
import type { FunctionFacts } from "../../../../mod/functions/api/system_context.ts";
import { propertiesOf, requiredOf, type Schema, typeText } from "../../server/json_schema.ts";

export interface Snippet {
  readonly name: string;
  readonly text: string;
}

/** Returns a schema as a TypeScript type; several lines for objects with fields. */
export function typeScriptOf(schema: Schema | null, indent = ""): string {
  if (schema === null) return "any";
  const alternatives = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(alternatives)) return alternatives.map((one) => typeScriptOf(one, indent)).join(" | ");
  const items = schema["items"];
  if (schema["type"] === "array" && isSchema(items)) {
    const item = typeScriptOf(items, indent);
    return item.includes(" | ") ? `(${item})[]` : `${item}[]`;
  }
  if (schema["format"] === "id") return `Id<${JSON.stringify(schema["x-table"] ?? "")}>`;
  if (schema["type"] === "integer") return "number";
  if (schema["type"] !== "object" || "const" in schema || "enum" in schema) return typeText(schema);
  const inner = `${indent}  `;
  const required = new Set(requiredOf(schema));
  const fields = Object.entries(propertiesOf(schema)).map(([name, field]) => {
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
    return `${inner}${key}${required.has(name) ? "" : "?"}: ${typeScriptOf(field, inner)};\n`;
  });
  if (fields.length > 0) return `{\n${fields.join("")}${indent}}`;
  const values = schema["additionalProperties"];
  return isSchema(values) ? `Record<string, ${typeScriptOf(values, indent)}>` : "{}";
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the ways to call a function: clients cannot call internal ones. */
export function snippetsOf(
  { path, kind, visibility }: Pick<FunctionFacts, "path" | "kind" | "visibility">,
  { args, origin }: { readonly args: Readonly<Record<string, unknown>>; readonly origin: string },
): readonly Snippet[] {
  const compact = JSON.stringify(args);
  const commandLine = {
    name: "CLI",
    text: `npx syncline run ${shellQuoted(path)} ${shellQuoted(compact)} --data ./data`,
  };
  if (visibility === "internal") return [commandLine];
  const name = JSON.stringify(path);
  const given = compact === "{}" ? "" : `, ${spaced(args)}`;
  const body = JSON.stringify({ path, args });
  return [
    {
      name: "curl",
      text: [
        `curl ${origin}/api/${kind} \\`,
        `  -H "Content-Type: application/json" \\`,
        `  -H "Authorization: Bearer $ACCESS_TOKEN" \\`,
        `  -d ${shellQuoted(body)}`,
      ].join("\n"),
    },
    {
      name: "fetch",
      text: [
        `const response = await fetch("${origin}/api/${kind}", {`,
        `  method: "POST",`,
        `  headers: { "Content-Type": "application/json", Authorization: \`Bearer \${accessToken}\` },`,
        `  body: JSON.stringify({ path: ${name}, args: ${spaced(args)} }),`,
        `});`,
        `const { value } = await response.json();`,
      ].join("\n"),
    },
    {
      name: "Client",
      text: [
        `import { SynclineClient } from "syncline/client";`,
        ``,
        `const client = new SynclineClient("${origin}");`,
        `const value = await client.${kind}(${name}${given});`,
      ].join("\n"),
    },
    { name: "React", text: reactText(kind, name, given) },
    {
      name: "Python",
      text: [
        `import json, os, urllib.request`,
        ``,
        `call = {"path": ${name}, "args": ${pythonText(args)}}`,
        `headers = {`,
        `    "Content-Type": "application/json",`,
        `    "Authorization": f"Bearer {os.environ['ACCESS_TOKEN']}",`,
        `}`,
        `request = urllib.request.Request("${origin}/api/${kind}", json.dumps(call).encode(), headers)`,
        `with urllib.request.urlopen(request) as response:`,
        `    value = json.load(response)["value"]`,
        `print(value)`,
      ].join("\n"),
    },
    commandLine,
  ];
}

function reactText(kind: FunctionFacts["kind"], name: string, given: string): string {
  const hook = { query: "useQuery", mutation: "useMutation", action: "useAction" }[kind];
  return [
    `import { ${hook} } from "syncline/react";`,
    ``,
    ...kind === "query"
      ? [`const value = useQuery(${name}${given});`]
      : [`const run = ${hook}(${name});`, `await run(${given.slice(2)});`],
  ].join("\n");
}

/** Formats a value on one line, as people write it. */
function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).map(([name, field]) => {
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
    return `${key}: ${spaced(field)}`;
  });
  return fields.length === 0 ? "{}" : `{ ${fields.join(", ")} }`;
}

/** Formats JSON as a literal of Python. Strings and numbers are written the same way in both. */
function pythonText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonText).join(", ")}]`;
  if (typeof value === "boolean") return value ? "True" : "False";
  if (value === null) return "None";
  if (typeof value !== "object") return JSON.stringify(value);
  const fields = Object.entries(value).map(([name, field]) =>
    `${JSON.stringify(name)}: ${pythonText(field)}`
  );
  return `{${fields.join(", ")}}`;
}

function shellQuoted(text: string): string {
  return /^[\w:./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
