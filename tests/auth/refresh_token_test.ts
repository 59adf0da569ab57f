/** Refresh tokens: content, order, and rejected tokens. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createCipheriv, createHmac, randomBytes } from "node:crypto";
import fc from "fast-check";
import { deriveKeys } from "../../mod/auth/secret_key.ts";
import { anonymous } from "../../mod/functions/identity.ts";
import { TokenHasher } from "../../mod/auth/tokens/token_hash.ts";
import { RefreshTokens } from "../../mod/auth/tokens/refresh_token.ts";
import { startTestAccounts } from "./support/test_accounts.ts";

const tokens = new RefreshTokens(randomBytes(32));

Deno.test("RT1 a refresh token is 43 URL-safe characters and opens to its family and generation", () => {
  const first = tokens.first();
  assert.match(first.token, /^[A-Za-z0-9_-]{43}$/);
  assert.deepEqual(tokens.open(first.token), { family: first.family, generation: 0 });
  assert.notEqual(tokens.first().family, first.family);
});

Deno.test("each refresh token of a session is new and follows from the one before", () => {
  let current = tokens.first();
  const seen = new Set([current.token]);
  for (let generation = 1; generation <= 200; generation++) {
    assert.deepEqual(tokens.next(current), tokens.next(current));
    current = tokens.next(current);
    assert.deepEqual(tokens.open(current.token), { family: current.family, generation });
    seen.add(current.token);
  }
  assert.equal(seen.size, 201);
});

Deno.test("with another key a token opens to another family, and its session ends differently", () => {
  const first = tokens.first();
  const other = new RefreshTokens(randomBytes(32));
  assert.notEqual(other.open(first.token)?.family, first.family);
  assert.notEqual(other.next(first).token, tokens.next(first).token);
});

Deno.test("no changed token opens to the family it was changed from", () => {
  const first = tokens.first();
  fc.assert(fc.property(fc.integer({ min: 0, max: 255 }), (bit) => {
    const bytes = Uint8Array.fromBase64(first.token, { alphabet: "base64url" });
    const index = bit >> 3;
    bytes[index] = (bytes[index] ?? 0) ^ (1 << (bit & 7));
    const changed = bytes.toBase64({ alphabet: "base64url", omitPadding: true });
    assert.notEqual(tokens.open(changed)?.family, first.family);
  }));
});

for (
  const text of [
    "",
    "short",
    "A".repeat(42),
    "A".repeat(44),
    `${"A".repeat(42)}=`,
    `${"A".repeat(42)}B`,
    `${"A".repeat(42)} `,
  ]
) {
  Deno.test(`${JSON.stringify(text)} is not a refresh token`, () => assert.equal(tokens.open(text), null));
}

Deno.test("tokens of the first version contain their family and generation", () => {
  const earlier = new RefreshTokens(Uint8Array.from({ length: 32 }, (_, i) => i));
  const family = "558a1e9d8aef337f6297eaf0";
  assert.deepEqual(earlier.open("8Zc45DWp3K8xBNf_1wrGL9ZoqUYJwFNyf9AHmMuXr7M"), { family, generation: 0 });
  assert.deepEqual(earlier.open("rzD09at5nGL-_vAHWOCaPXY3Oo380n6rpRHbZEsWQP4"), { family, generation: 3 });
});

/** Returns a token of the first version. */
function encryptedToken(key: Uint8Array, family: string, generation: number): string {
  const hmac = (by: Uint8Array, data: string | Uint8Array) => createHmac("sha256", by).update(data).digest();
  const random = randomBytes(16);
  const mask = hmac(hmac(key, "mask"), random);
  const masked = (block: Uint8Array) => Buffer.from(block.map((byte, i) => byte ^ (mask[i] ?? 0)));
  const plain = Buffer.alloc(16);
  plain.write(family, "hex");
  plain.writeUInt32BE(generation, 12);
  const cipher = createCipheriv("aes-256-ecb", hmac(key, "block"), null).setAutoPadding(false);
  const block = masked(Buffer.concat([cipher.update(masked(plain)), cipher.final()]));
  return Buffer.concat([random, block]).toString("base64url");
}

Deno.test("a session of the first version is refreshed, and reuse of its token ends it", async () => {
  const secret = randomBytes(32);
  const keys = deriveKeys(secret);
  const hasher = await TokenHasher.create(keys.tokenHashes);
  const present = new RefreshTokens(keys.refreshTokens);
  await using accounts = await startTestAccounts({ secret });
  const { refreshToken: first } = await accounts.signUp("a@example.com");
  const { family = "" } = present.open(first) ?? {};
  const earlier = encryptedToken(keys.refreshTokens, family, 1);
  const { outcome } = await accounts.port.mutate({
    udfPath: "_system/auth:refreshSession",
    args: {
      family,
      generation: 0,
      hash: hasher.hash("refresh", first),
      nextHash: hasher.hash("refresh", earlier),
      attempt: null,
      now: accounts.clock.now,
    },
    identity: anonymous,
    origin: "system",
  });
  assert.equal(outcome.ok, true);

  const { status, body } = await accounts.post("/refresh", { refreshToken: earlier });
  assert.equal(status, 200);
  assert.deepEqual(body.refreshToken, present.next({ family, generation: 1 }).token);
  accounts.clock.now += 10_000;
  const reuse = await accounts.post("/refresh", { refreshToken: earlier });
  assert.equal(reuse.body.errorData.code, "refresh_token_reused");
  assert.equal(accounts.port.rows("_sessions").length, 0);
});
