/** Manipulated tokens and key sets, and an issuer to test them with. */
import { Buffer } from "node:buffer";
import { createHmac, createPublicKey, type JsonWebKey } from "node:crypto";
import { presetParts, readAuthConfig } from "../../../mod/auth/mod.ts";
import type { AppParts } from "../support/in_process_port.ts";
import { part, signed, type SigningKey, signingKey, world } from "../support/stand_in.ts";
import { startTestAccounts, type TestAccounts } from "../support/test_accounts.ts";

export const issuer = "https://id.example.com";

export const keys = {
  rsa: await signingKey("RS256", "rsa"),
  ec: await signingKey("ES256", "ec"),
  ed: await signingKey("EdDSA", "ed"),
  next: await signingKey("RS256", "next"),
  stranger: await signingKey("RS256", "rsa"),
  long: await signingKey("RS512", "long"),
};

export interface Setup extends AsyncDisposable {
  readonly accounts: TestAccounts;
  readonly asked: string[];
  /** The issuer's response to a request for its keys. */
  answer: () => Response | Promise<Response>;
  verify(token: string): ReturnType<TestAccounts["service"]["authenticator"]["verify"]>;
  claims(further?: Record<string, unknown>): Record<string, unknown>;
}

/** Timeout for an issuer that never answers. */
export const SHORT_REQUEST_MS = 2_000;

/** `requestMs`: timeout of requests to the issuer. On a busy machine they may take seconds. */
export async function setUp(
  { linkByEmail = false, fields = {}, signups = true, app, requestMs = 60_000 }: {
    linkByEmail?: boolean;
    fields?: Record<string, unknown>;
    signups?: boolean;
    app?: AppParts;
    requestMs?: number;
  } = {},
): Promise<Setup> {
  const keySet = () => Response.json({ keys: [keys.rsa, keys.ec, keys.ed].map(({ jwk }) => jwk) });
  const outside = world({
    "id.example.com": ({ url }) =>
      url === `${issuer}/.well-known/openid-configuration`
        ? Response.json({ issuer, jwks_uri: `${issuer}/keys` })
        : setup.answer(),
    "other.example.com": () =>
      Response.json({ issuer: "https://other.example.com", jwks_uri: `${issuer}/keys` }),
  });
  const config = {
    issuers: [
      { issuer, audience: ["app", "app-2"], linkByEmail, ...fields },
      { issuer: "https://other.example.com", audience: "app" },
    ],
  };
  const accounts = await startTestAccounts({
    signups,
    ...(app && { app }),
    externalAuth: (now) =>
      readAuthConfig(JSON.stringify(config), {
        sources: { env: () => undefined, readFile: () => Promise.reject(new Error("no files")) },
        parts: presetParts({ now, fetch: outside.fetch, requestMs }),
      }),
  });
  const setup: Setup = {
    accounts,
    asked: outside.asked,
    answer: keySet,
    verify: (token) => accounts.service.authenticator.verify(token),
    claims: (further = {}) => {
      const now = Math.floor(accounts.clock.now / 1000);
      return { iss: issuer, sub: "ann", aud: "app", iat: now, exp: now + 600, ...further };
    },
    [Symbol.asyncDispose]: () => accounts[Symbol.asyncDispose](),
  };
  return setup;
}

const pem = createPublicKey({ key: keys.rsa.jwk as JsonWebKey, format: "jwk" }).export({
  type: "spki",
  format: "pem",
});

/** Signed like the service's own tokens, with a public secret. */
function symmetric(claims: Record<string, unknown>, secret: string | Buffer): string {
  const text = `${part({ alg: "HS256", typ: "JWT", kid: "rsa" })}.${part(claims)}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

export interface TokenVector {
  readonly name: string;
  readonly token: (setup: Setup) => string | Promise<string>;
  readonly error: string;
}

export const now = (setup: Setup) => Math.floor(setup.accounts.clock.now / 1000);
const rsa = (claims: Record<string, unknown>) => (setup: Setup) => signed(setup.claims(claims), keys.rsa);
const headed = (header: Record<string, unknown>, key: SigningKey = keys.rsa) => (setup: Setup) =>
  signed(setup.claims(), key, header);
const signature = "invalid access token signature";
const malformed = "malformed access token";
const claimsFault = "invalid access token claims";
const issuerFault = "unknown token issuer";
export const keyFault = "unknown token signing key";

export const tokenVectors: readonly TokenVector[] = [
  { name: "XI2 another issuer", token: rsa({ iss: "https://evil.example.com" }), error: issuerFault },
  { name: "XI2 the issuer followed by a slash", token: rsa({ iss: `${issuer}/` }), error: issuerFault },
  { name: "XI2 the issuer in capitals", token: rsa({ iss: issuer.toUpperCase() }), error: issuerFault },
  { name: "XI2 the issuer below a path", token: rsa({ iss: `${issuer}/tenant` }), error: issuerFault },
  { name: "XI2 no issuer", token: rsa({ iss: undefined }), error: issuerFault },
  { name: "XI2 a list of issuers", token: rsa({ iss: [issuer] }), error: issuerFault },
  { name: "XI2 a number as issuer", token: rsa({ iss: 1 }), error: issuerFault },
  { name: "XI2 the service itself as issuer", token: rsa({ iss: "svc", typ: "access" }), error: issuerFault },
  {
    name: "XI2 a property of every object as issuer",
    token: rsa({ iss: "__proto__" }),
    error: issuerFault,
  },
  { name: "XI3 an unknown key", token: headed({ kid: "nobody" }), error: keyFault },
  { name: "XI3 an endless name of a key", token: headed({ kid: "k".repeat(4_000) }), error: keyFault },
  { name: "XI3 the name of another key", token: headed({ kid: "ec" }), error: keyFault },
  { name: "XI3 a path as name of a key", token: headed({ kid: "../../etc/passwd" }), error: keyFault },
  {
    name: "XI3 no key name where two keys match",
    token: (setup) => {
      setup.answer = () => Response.json({ keys: [keys.rsa.jwk, keys.next.jwk] });
      return signed(setup.claims(), keys.rsa, { kid: undefined });
    },
    error: keyFault,
  },
  { name: "XI3 a number as name of a key", token: headed({ kid: 1 }), error: malformed },
  { name: "XI3 a stranger's key under the right name", token: headed({}, keys.stranger), error: signature },
  {
    name: "XI3 a key for another algorithm",
    token: (setup) => {
      setup.answer = () => Response.json({ keys: [{ ...keys.rsa.jwk, alg: "RS512" }] });
      return signed(setup.claims(), keys.rsa);
    },
    error: keyFault,
  },
  {
    name: "XI3 a key for encryption",
    token: (setup) => {
      setup.answer = () => Response.json({ keys: [{ ...keys.rsa.jwk, use: "enc" }] });
      return signed(setup.claims(), keys.rsa);
    },
    error: keyFault,
  },
  {
    name: "XI3 a symmetric key in the key set",
    token: (setup) => {
      setup.answer = () => Response.json({ keys: [{ kty: "oct", k: "AAAA", kid: "rsa" }] });
      return signed(setup.claims(), keys.rsa);
    },
    error: keyFault,
  },
  {
    name: "XI3 a key without its numbers",
    token: (setup) => {
      setup.answer = () => Response.json({ keys: [{ kty: "RSA", kid: "rsa" }] });
      return signed(setup.claims(), keys.rsa);
    },
    error: keyFault,
  },
  { name: "XI3 an algorithm that is not accepted", token: headed({}, keys.long), error: signature },
  {
    name: "XI3 the algorithm none",
    token: (setup) => `${part({ alg: "none" })}.${part(setup.claims())}.`,
    error: malformed,
  },
  {
    name: "XI3 the algorithm none with a signature",
    token: (setup) => `${part({ alg: "none" })}.${part(setup.claims())}.AAAA`,
    error: signature,
  },
  {
    name: "XI3 the algorithm None in capitals",
    token: (setup) => `${part({ alg: "NONE" })}.${part(setup.claims())}.AAAA`,
    error: signature,
  },
  {
    name: "XI3 AT5 the public key as a secret",
    token: (setup) => symmetric(setup.claims(), String(pem)),
    error: signature,
  },
  {
    name: "XI3 AT5 the key's modulus as a secret",
    token: (setup) => symmetric(setup.claims(), Buffer.from(keys.rsa.jwk.n ?? "", "base64url")),
    error: signature,
  },
  { name: "XI3 AT5 no secret at all", token: (setup) => symmetric(setup.claims(), ""), error: signature },
  {
    name: "XI3 a key in the header",
    token: headed({ jwk: keys.stranger.jwk }, keys.stranger),
    error: signature,
  },
  {
    name: "XI3 an address of keys in the header",
    token: headed({ jku: "https://evil.example.com/keys", kid: "evil" }, keys.stranger),
    error: keyFault,
  },
  {
    name: "XI3 a certificate's address in the header",
    token: headed({ x5u: "https://evil.example.com/cert" }, keys.stranger),
    error: signature,
  },
  {
    name: "XI3 a header that wants to be understood",
    token: headed({ crit: ["x-demo"], "x-demo": 1 }),
    error: malformed,
  },
  { name: "XI1 a token for logging out", token: headed({ typ: "logout+jwt" }), error: malformed },
  { name: "XI1 a proof of possession", token: headed({ typ: "dpop+jwt" }), error: malformed },
  {
    name: "XI1 claims of another user under a signature",
    token: async (setup) => {
      const [head, , tail] = (await signed(setup.claims(), keys.rsa)).split(".");
      return `${head}.${part(setup.claims({ sub: "bob" }))}.${tail}`;
    },
    error: signature,
  },
  {
    name: "XI1 a signature that was cut",
    token: async (setup) => (await signed(setup.claims(), keys.rsa)).slice(0, -4),
    error: signature,
  },
  {
    name: "XI1 a signature of another token",
    token: async (setup) => {
      const [head, body] = (await signed(setup.claims(), keys.rsa)).split(".");
      return `${head}.${body}.${(await signed(setup.claims({ sub: "bob" }), keys.rsa)).split(".")[2]}`;
    },
    error: signature,
  },
  {
    name: "XI1 four parts",
    token: async (setup) => `${await signed(setup.claims(), keys.rsa)}.AAAA`,
    error: malformed,
  },
  { name: "XI1 an encrypted token's five parts", token: () => "a.b.c.d.e", error: malformed },
  {
    name: "XI1 claims that are a list",
    token: () => `${part({ alg: "RS256", kid: "rsa" })}.${part([1])}.AAAA`,
    error: malformed,
  },
  {
    name: "XI1 a token of ten thousand characters",
    token: rsa({ more: "x".repeat(10_000) }),
    error: malformed,
  },
  {
    name: "XI4 one that has expired",
    token: (setup) => signed(setup.claims({ exp: now(setup) }), keys.rsa),
    error: "access token expired",
  },
  {
    name: "XI4 one that expired within the minute that nbf has",
    token: (setup) => signed(setup.claims({ exp: now(setup) - 30 }), keys.rsa),
    error: "access token expired",
  },
  { name: "XI4 no exp", token: rsa({ exp: undefined }), error: claimsFault },
  { name: "XI4 a text as exp", token: rsa({ exp: "9999999999" }), error: claimsFault },
  { name: "XI4 nothing as exp", token: rsa({ exp: null }), error: claimsFault },
  { name: "XI4 an exp after the end of time", token: rsa({ exp: 1e300 }), error: claimsFault },
  {
    name: "XI5 one that begins in 61 seconds",
    token: (setup) => signed(setup.claims({ nbf: now(setup) + 61 }), keys.rsa),
    error: "access token not yet valid",
  },
  { name: "XI5 a text as nbf", token: rsa({ nbf: "soon" }), error: claimsFault },
  { name: "XI6 another audience", token: rsa({ aud: "other" }), error: claimsFault },
  { name: "XI6 no audience", token: rsa({ aud: undefined }), error: claimsFault },
  { name: "XI6 an empty list of audiences", token: rsa({ aud: [] }), error: claimsFault },
  { name: "XI6 an audience that begins like ours", token: rsa({ aud: "app-3" }), error: claimsFault },
  { name: "XI6 an audience within a list within a list", token: rsa({ aud: [["app"]] }), error: claimsFault },
  { name: "XI6 no subject", token: rsa({ sub: undefined }), error: claimsFault },
  { name: "XI6 an empty subject", token: rsa({ sub: "" }), error: claimsFault },
  { name: "XI6 a number as subject", token: rsa({ sub: 7 }), error: claimsFault },
  { name: "XI6 an endless subject", token: rsa({ sub: "s".repeat(300) }), error: claimsFault },
];

export const brokenKeySets: Readonly<Record<string, () => Response | Promise<Response>>> = {
  "down": () => Promise.reject(new TypeError("error sending request")),
  "slow": () => new Promise(() => {}),
  "10 MB long": () => new Response(new Uint8Array(10 << 20).fill(32)),
  "endless": () =>
    new Response(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(65_536)) })),
  "an error": () => new Response("no", { status: 500 }),
  "no JSON": () => new Response("<html>"),
  "no key set": () => Response.json({ keys: "none" }),
  "a set of ten thousand keys": () => Response.json({ keys: Array(10_000).fill(keys.rsa.jwk) }),
  "a redirect into the network behind": () => Response.redirect("http://169.254.169.254/latest/", 302),
};
