/** Builds the OpenAPI 3.1 document of an app: its public functions, and the endpoints that every app has. */
import { type ServiceErrorCode, serviceErrors } from "../errors.ts";
import type { FunctionFacts } from "../functions/api/service.ts";
import { callPath } from "./call_paths.ts";
import { ComponentSchemas } from "./component_schemas.ts";
import { servicePaths } from "./service_paths.ts";

export interface OpenApiOptions {
  /** Functions of the app and the service; only the app's public ones are described. */
  readonly functions: readonly FunctionFacts[];
  /** Version of the server. */
  readonly version: string;
  /** Base URL, or `/` for the server that returns the document. */
  readonly serverUrl: string;
}

/** Returns the document as JSON-compatible objects. */
export function openApiDocument({ functions, version, serverUrl }: OpenApiOptions): OpenApiDocument {
  const callable = functions.filter(({ ofService, visibility }) => !ofService && visibility === "public");
  const schemas = new ComponentSchemas();
  for (const [name, schema] of Object.entries(sharedSchemas)) schemas.add(name, schema);
  const paths = Object.fromEntries(
    (["query", "mutation", "action"] as const).map((
      kind,
    ) => [`/api/${kind}`, callPath(kind, callable, schemas)]),
  );
  return {
    openapi: "3.1.0",
    info: {
      title: "Syncline app",
      version,
      description:
        "The functions of the app and the endpoints for accounts and files. Live queries use the WebSocket at `/api/sync`.",
    },
    servers: [{ url: serverUrl }],
    tags: ["Functions", "Accounts", "Files", "Health"].map((name) => ({ name })),
    paths: { ...paths, ...servicePaths() },
    components: {
      schemas: schemas.all,
      responses: sharedResponses,
      parameters: {
        SynclineRequest: {
          name: "Syncline-Request",
          in: "header",
          description:
            "A session id (a UUID) and a request id. A repeated mutation gets the recorded response and does not run again.",
          schema: { type: "string", pattern: "^\\S+ -?\\d{1,16}$" },
          example: "1b671a64-40d5-491e-99b0-da01ff1f3341 1",
        },
      },
      securitySchemes: {
        accessToken: {
          type: "http",
          scheme: "bearer",
          description: "The access token of a sign-in, or a token of a trusted issuer.",
        },
      },
    },
  };
}

export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: Readonly<Record<string, string>>;
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, object>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, object>>>>;
}

const errorFields = {
  status: { type: "string", const: "error" },
  errorMessage: { type: "string" },
};

const errorData = {
  type: "object",
  properties: { code: { type: "string" }, data: {} },
  required: ["code", "data"],
};

const sharedSchemas = {
  LogLines: {
    type: "array",
    items: { type: "string" },
    description: "Log lines of the function. Empty unless the server runs with `--dev`.",
  },
  AnyCall: {
    type: "object",
    properties: { path: { type: "string" }, args: { type: "object", additionalProperties: true } },
    required: ["path", "args"],
  },
  CallError: {
    type: "object",
    properties: {
      ...errorFields,
      errorData: {
        description: "Code and data of an error that the app threw on purpose.",
        anyOf: [errorData, { type: "null" }],
      },
      logLines: { $ref: "#/components/schemas/LogLines" },
    },
    required: ["status", "errorMessage", "errorData", "logLines"],
  },
  ServiceError: {
    type: "object",
    properties: { ...errorFields, errorData },
    required: ["status", "errorMessage", "errorData"],
  },
  Tokens: {
    type: "object",
    properties: {
      accessToken: { type: "string" },
      refreshToken: { type: "string" },
      expiresIn: { type: "number", description: "Lifetime of the access token in seconds." },
      userId: { type: "string" },
    },
    required: ["accessToken", "refreshToken", "expiresIn"],
  },
} as const;

function callFailure(description: string, message: string, data: unknown = null): object {
  return {
    description,
    content: {
      "application/json": {
        schema: { $ref: "#/components/schemas/CallError" },
        example: { status: "error", errorMessage: message, errorData: data, logLines: [] },
      },
    },
  };
}

function serviceFailure(description: string, code: ServiceErrorCode, further: object = {}): object {
  const example = {
    status: "error",
    errorMessage: serviceErrors[code][1],
    errorData: { code, data: null },
  };
  return {
    description,
    ...further,
    content: {
      "application/json": { schema: { $ref: "#/components/schemas/ServiceError" }, example },
    },
  };
}

const retryAfter = {
  headers: { "Retry-After": { description: "Seconds to wait.", schema: { type: "integer" } } },
};

const sharedResponses = {
  CallRefused: callFailure(
    "The arguments do not match, or the function threw a `UserError`.",
    "The message of the app",
    { code: "code_of_the_app", data: null },
  ),
  FunctionNotFound: callFailure(
    "There is no public function with this path.",
    'There is no function "tasks:none"',
  ),
  CallFailed: callFailure("The function failed.", "Server Error"),
  InvalidToken: serviceFailure("The token or the credentials are invalid.", "invalid_token"),
  Forbidden: serviceFailure("The request is not permitted.", "origin_not_allowed"),
  BadRequest: serviceFailure("The request is invalid.", "bad_request"),
  NotFound: serviceFailure("Not found.", "not_found"),
  BodyTooLarge: serviceFailure("The body is too large.", "body_too_large"),
  RateLimited: serviceFailure("Too many requests.", "rate_limited", retryAfter),
  Unavailable: serviceFailure(
    "The server is overloaded, starting or stopping. With `outcome_unknown`, the call may have been committed.",
    "overloaded",
    retryAfter,
  ),
};
