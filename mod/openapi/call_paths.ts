/** The three endpoints that call functions, with a request schema for each function. */
import type { FunctionFacts, JsonSchema } from "../functions/api/service.ts";
import { componentName, type ComponentSchemas } from "./component_schemas.ts";
import { exampleOf } from "./examples.ts";

type Kind = FunctionFacts["kind"];

const ANY_ARGS: JsonSchema = { type: "object", additionalProperties: true };

const SUMMARIES: Readonly<Record<Kind, string>> = {
  query: "Run a query",
  mutation: "Run a mutation",
  action: "Run an action",
};

/** Statuses of a call, with the shared responses that describe them. */
export const callErrors: Readonly<Record<string, object>> = {
  400: { $ref: "#/components/responses/CallRefused" },
  401: { $ref: "#/components/responses/InvalidToken" },
  403: { $ref: "#/components/responses/Forbidden" },
  404: { $ref: "#/components/responses/FunctionNotFound" },
  413: { $ref: "#/components/responses/BodyTooLarge" },
  500: { $ref: "#/components/responses/CallFailed" },
  503: { $ref: "#/components/responses/Unavailable" },
};

/** Returns the path item of `/api/query`, `/api/mutation` or `/api/action`. */
export function callPath(kind: Kind, functions: readonly FunctionFacts[], schemas: ComponentSchemas): object {
  const calls = functions.filter((each) => each.kind === kind).map((each) => describeCall(each, schemas));
  const schema = calls.length === 0 ? { $ref: "#/components/schemas/AnyCall" } : {
    oneOf: calls.map(({ request }) => request),
    discriminator: {
      propertyName: "path",
      mapping: Object.fromEntries(calls.map(({ path, request }) => [path, request.$ref])),
    },
  };
  const examples = Object.fromEntries(
    calls.filter(({ example }) => example !== undefined)
      .map(({ path, doc, example }) => [
        componentName(path),
        { summary: path, ...(doc !== null && { description: doc }), value: example },
      ]),
  );
  return {
    post: {
      operationId: kind,
      tags: ["Functions"],
      summary: SUMMARIES[kind],
      security: [{}, { accessToken: [] }],
      ...(kind === "mutation" && { parameters: [{ $ref: "#/components/parameters/SynclineRequest" }] }),
      requestBody: {
        required: true,
        content: { "application/json": { schema, ...(Object.keys(examples).length > 0 && { examples }) } },
      },
      responses: {
        200: {
          description: "The function returned a value.",
          content: { "application/json": { schema: successSchema(kind, calls) } },
        },
        ...callErrors,
      },
    },
  };
}

interface DescribedCall {
  readonly path: string;
  readonly doc: string | null;
  readonly request: { readonly $ref: string };
  /** Reference to the schema of its result; `null` if it returns any value. */
  readonly result: { readonly $ref: string } | null;
  /** An example request; `undefined` if none can be made. */
  readonly example: object | undefined;
}

function describeCall({ path, args, returns, doc }: FunctionFacts, schemas: ComponentSchemas): DescribedCall {
  const name = componentName(path);
  const argsRef = schemas.add(`${name}.args`, args ?? ANY_ARGS);
  const exampleArgs = args === null ? {} : exampleOf(argsRef, (ref) => schemas.resolve(ref));
  return {
    path,
    doc,
    request: schemas.add(`${name}.call`, {
      type: "object",
      ...(doc !== null && { description: doc }),
      properties: { path: { type: "string", const: path }, args: argsRef },
      required: ["path", "args"],
    }),
    result: returns === null ? null : schemas.add(`${name}.result`, returns),
    example: exampleArgs === undefined ? undefined : { path, args: exampleArgs },
  };
}

function successSchema(kind: Kind, calls: readonly DescribedCall[]): object {
  const results = calls.map(({ result }) => result);
  const known = results.filter((result) => result !== null);
  return {
    type: "object",
    properties: {
      status: { type: "string", const: "success" },
      value: {
        description: "The result of the function: `<function>.result` of the schemas, if it declares one.",
        // Without functions, or with one that returns anything, nothing is known.
        ...(known.length > 0 && known.length === results.length && { anyOf: known }),
      },
      ...(kind === "mutation" && { ts: { type: "integer", description: "The commit of the mutation." } }),
      logLines: { $ref: "#/components/schemas/LogLines" },
    },
    required: ["status", "value", "logLines", ...(kind === "mutation" ? ["ts"] : [])],
  };
}
