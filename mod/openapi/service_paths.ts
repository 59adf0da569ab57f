/** The endpoints for accounts, files and health, which are the same for every app. */

const text = { type: "string" } as const;
const number = { type: "number" } as const;
const flag = { type: "boolean" } as const;

const tokens = { $ref: "#/components/schemas/Tokens" };
const empty = { type: "object" };
const proof = {
  description: "The `token` of the link, or `email` and `code`.",
  token: text,
  email: text,
  code: text,
} as const;

interface Endpoint {
  readonly summary: string;
  /** Fields of the body; those in `optional` may be missing. */
  readonly body: Readonly<Record<string, object>>;
  readonly optional?: readonly string[];
  readonly result: object;
}

const credentials = { email: { ...text, examples: ["ada@example.com"] }, password: text };
const { description: proofDescription, ...proofFields } = proof;
const proofNames = Object.keys(proofFields);
const mailBody = { email: text, redirectTo: { ...text, format: "uri" } };

/** `POST` endpoints below `/api/auth`. */
const ACCOUNTS: Readonly<Record<string, Endpoint>> = {
  "signup": {
    summary: "Create an account",
    body: { ...credentials, name: text },
    optional: ["name"],
    result: {
      anyOf: [tokens, {
        type: "object",
        properties: { verificationRequired: { type: "boolean", const: true } },
        required: ["verificationRequired"],
      }],
    },
  },
  "anonymous": { summary: "Sign in as a new anonymous user", body: {}, result: tokens },
  "signin": { summary: "Sign in with a password", body: credentials, result: tokens },
  "refresh": {
    summary: "Exchange a refresh token for new tokens",
    body: { refreshToken: text },
    result: tokens,
  },
  "signout": {
    summary: "End the session",
    body: { refreshToken: text },
    optional: ["refreshToken"],
    result: empty,
  },
  "verify-email/request": {
    summary: "Send a mail that verifies an address",
    body: mailBody,
    optional: ["redirectTo"],
    result: empty,
  },
  "verify-email/confirm": {
    summary: "Verify an address",
    body: proofFields,
    optional: proofNames,
    result: empty,
  },
  "reset/request": {
    summary: "Send a mail that resets a password",
    body: mailBody,
    optional: ["redirectTo"],
    result: empty,
  },
  "reset/confirm": {
    summary: "Set a new password and sign in",
    body: { ...proofFields, password: text },
    optional: proofNames,
    result: tokens,
  },
  "magic/request": {
    summary: "Send a mail that signs in",
    body: mailBody,
    optional: ["redirectTo"],
    result: empty,
  },
  "magic/verify": {
    summary: "Sign in with a mail",
    body: proofFields,
    optional: proofNames,
    result: tokens,
  },
  "mfa/verify": {
    summary: "Finish a sign-in with a second factor",
    body: { challenge: text, code: text, recoveryCode: text },
    optional: ["code", "recoveryCode"],
    result: tokens,
  },
  "passkey/verify": {
    summary: "Sign in with a passkey",
    body: { response: { type: "object", description: "`PublicKeyCredential` of the browser, as JSON" } },
    result: tokens,
  },
  "passkey/signup": {
    summary: "Sign an anonymous user up with a new passkey",
    body: {
      response: { type: "object", description: "`PublicKeyCredential` of the browser, as JSON" },
      name: text,
    },
    optional: ["name"],
    result: tokens,
  },
  "oauth/verify": {
    summary: "Finish a sign-in with a provider",
    body: { token: { ...text, description: "`svc_sign_in_token` of the page's address" } },
    result: tokens,
  },
};

const serviceErrors = {
  400: { $ref: "#/components/responses/BadRequest" },
  401: { $ref: "#/components/responses/InvalidToken" },
  403: { $ref: "#/components/responses/Forbidden" },
  429: { $ref: "#/components/responses/RateLimited" },
  503: { $ref: "#/components/responses/Unavailable" },
};

function json(schema: object): object {
  return { "application/json": { schema } };
}

function accountPath(name: string, { summary, body, optional = [], result }: Endpoint): object {
  const required = Object.keys(body).filter((field) => !optional.includes(field));
  const isProof = optional === proofNames;
  const schema = {
    type: "object",
    properties: body,
    ...(required.length > 0 && { required }),
    ...(isProof && { description: proofDescription }),
  };
  return {
    post: {
      operationId: name.replaceAll(/[-/](\w)/g, (_, letter: string) => letter.toUpperCase()),
      tags: ["Accounts"],
      summary,
      security: name === "signout" ? [{}, { accessToken: [] }] : [],
      ...(Object.keys(body).length > 0 && { requestBody: { required: true, content: json(schema) } }),
      responses: { 200: { description: "Done.", content: json(result) }, ...serviceErrors },
    },
  };
}

const filePaths = {
  "/api/storage/upload": {
    post: {
      operationId: "uploadFile",
      tags: ["Files"],
      summary: "Upload a file to an upload URL",
      description: "A mutation creates the URL with `ctx.storage.generateUploadUrl()`.",
      security: [],
      parameters: [
        { name: "token", in: "query", required: true, schema: text },
        { name: "filename", in: "query", schema: text },
      ],
      requestBody: { required: true, content: { "application/octet-stream": {} } },
      responses: {
        200: {
          description: "The file is stored.",
          content: json({
            type: "object",
            properties: { storageId: text },
            required: ["storageId"],
          }),
        },
        ...serviceErrors,
        413: { $ref: "#/components/responses/BodyTooLarge" },
      },
    },
  },
  "/api/storage/{id}": {
    get: {
      operationId: "readFile",
      tags: ["Files"],
      summary: "Read a file",
      security: [],
      parameters: [
        { name: "id", in: "path", required: true, schema: text },
        { name: "exp", in: "query", description: "Expiry of a signed URL.", schema: number },
        { name: "sig", in: "query", description: "Signature of a signed URL.", schema: text },
        { name: "thumb", in: "query", description: "Thumbnail size, `WxH` or one length.", schema: text },
        { name: "fit", in: "query", schema: { ...text, enum: ["contain", "cover"] } },
        { name: "download", in: "query", schema: { ...text, const: "1" } },
      ],
      responses: {
        200: { description: "The file.", content: { "*/*": {} } },
        206: { description: "The requested range.", content: { "*/*": {} } },
        304: { description: "Not modified." },
        400: { $ref: "#/components/responses/BadRequest" },
        403: { $ref: "#/components/responses/Forbidden" },
        404: { $ref: "#/components/responses/NotFound" },
      },
    },
  },
};

/** Path items by path. */
export function servicePaths(): Readonly<Record<string, object>> {
  return {
    "/api/auth/providers": {
      get: {
        operationId: "authProviders",
        tags: ["Accounts"],
        summary: "List the ways to sign in",
        security: [],
        responses: {
          200: {
            description: "The ways that are enabled.",
            content: json({
              type: "object",
              properties: {
                password: flag,
                magicLink: flag,
                signups: flag,
                anonymous: flag,
                oauth: { type: "array", items: text },
              },
              required: ["password", "magicLink", "signups", "anonymous", "oauth"],
            }),
          },
        },
      },
    },
    ...Object.fromEntries(
      Object.entries(ACCOUNTS).map(([name, endpoint]) => [`/api/auth/${name}`, accountPath(name, endpoint)]),
    ),
    ...filePaths,
    "/api/health": {
      get: {
        operationId: "health",
        tags: ["Health"],
        summary: "Check that the server responds",
        security: [],
        responses: {
          200: {
            description: "The server responds. `ts` is the newest commit.",
            content: json({
              type: "object",
              properties: { status: { ...text, const: "ok" }, ts: number },
              required: ["status", "ts"],
            }),
          },
        },
      },
    },
  };
}
