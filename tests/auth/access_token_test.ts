/** Access tokens: content, and each reason to refuse one. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHmac, randomBytes } from "node:crypto";
import { type AccessClaims, AccessTokens } from "../../mod/auth/tokens/access_token.ts";

const key = crypto.getRandomValues(new Uint8Array(32));
const tokens = new AccessTokens(key);
const iat = 1_700_000_000;
const now = iat * 1000;
const claims: AccessClaims = { sub: "u1", sid: "s1", iat, exp: iat + 900 };

const part = (value: unknown) =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

function forged(header: unknown, payload: unknown, signingKey: Uint8Array = key): string {
  const text = `${part(header)}.${part(payload)}`;
  return `${text}.${createHmac("sha256", signingKey).update(text).digest("base64url")}`;
}

const goodHeader = { alg: "HS256", typ: "JWT" };
const goodPayload = { iss: "svc", typ: "access", ...claims };

Deno.test("AT2 an access token verifies to the claims it was signed with", async () => {
  assert.deepEqual(await tokens.verify(await tokens.sign(claims), now), { ok: true, claims });
  const admin: AccessClaims = { ...claims, adm: true, jti: "abc" };
  assert.deepEqual(await tokens.verify(await tokens.sign(admin), now), { ok: true, claims: admin });
  assert.deepEqual(await tokens.verify(forged(goodHeader, goodPayload), now), { ok: true, claims });
});

Deno.test("AT1 an access token has exactly the header and claims of the contract", async () => {
  const [header = "", payload = ""] = (await tokens.sign({ ...claims, adm: true, jti: "abc" })).split(".");
  assert.deepEqual(JSON.parse(Buffer.from(header, "base64url").toString()), goodHeader);
  assert.deepEqual(JSON.parse(Buffer.from(payload, "base64url").toString()), {
    ...goodPayload,
    adm: true,
    jti: "abc",
  });
});

Deno.test("AT2 an access token ends with the second it names", async () => {
  const token = await tokens.sign(claims);
  const expired = { ok: false, error: "access token expired" };
  assert.deepEqual(await tokens.verify(token, claims.exp * 1000), expired);
  assert.equal((await tokens.verify(token, claims.exp * 1000 - 1))?.ok, true);
  assert.deepEqual(await tokens.verify(token, claims.exp * 1000), expired);
});

const token = await tokens.sign(claims);
const [header = "", payload = "", signature = ""] = token.split(".");
const refusals: [name: string, token: string, error: string][] = [
  ["empty", "", "malformed access token"],
  ["one part", "abc", "malformed access token"],
  ["two parts", `${header}.${payload}`, "malformed access token"],
  ["four parts", `${token}.x`, "malformed access token"],
  ["an empty signature", `${header}.${payload}.`, "malformed access token"],
  ["padding", `${token}=`, "malformed access token"],
  ["a header that is not JSON", `${part("{")}.${payload}.${signature}`, "malformed access token"],
  ["no algorithm", forged({ typ: "JWT" }, goodPayload), "malformed access token"],
  [
    "a critical extension",
    forged({ ...goodHeader, crit: ["x"], x: 1 }, goodPayload),
    "malformed access token",
  ],
  [
    "another typ in its header",
    forged({ alg: "HS256", typ: "at+jwt" }, goodPayload),
    "malformed access token",
  ],
  ["another issuer", forged(goodHeader, { ...goodPayload, iss: "other" }), "malformed access token"],
  ["another type", forged(goodHeader, { ...goodPayload, typ: "refresh" }), "malformed access token"],
  ["no session", forged(goodHeader, { ...goodPayload, sid: undefined }), "malformed access token"],
  ["expiry as text", forged(goodHeader, { ...goodPayload, exp: "9999999999" }), "malformed access token"],
  ["claims that are an array", forged(goodHeader, [goodPayload]), "malformed access token"],
  ["a foreign key", forged(goodHeader, goodPayload, randomBytes(32)), "invalid access token signature"],
  [
    "claims changed",
    `${header}.${part({ ...goodPayload, sub: "u2" })}.${signature}`,
    "invalid access token signature",
  ],
  ["a shorter signature", token.slice(0, -1), "invalid access token signature"],
  [
    "a foreign key and no time left",
    forged(goodHeader, { ...goodPayload, exp: 1 }, randomBytes(32)),
    "invalid access token signature",
  ],
  ["no time left", forged(goodHeader, { ...goodPayload, exp: iat }), "access token expired"],
  [
    "too many characters",
    `${header}.${"A".repeat(9_000)}.${signature}`,
    "malformed access token",
  ],
];
for (const [name, bad, error] of refusals) {
  Deno.test(`AT2 an access token with ${name} is refused as ${error}`, async () => {
    assert.deepEqual(await tokens.verify(bad, now), { ok: false, error });
  });
}

Deno.test("AT5 a token of another algorithm belongs to an external issuer", async () => {
  for (const alg of ["RS256", "none"]) {
    assert.equal(await tokens.verify(forged({ alg, typ: "JWT" }, goodPayload), now), null);
  }
});
