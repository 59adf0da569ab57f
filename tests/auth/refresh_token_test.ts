import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { RefreshTokens } from "../../mod/auth/tokens/refresh_token.ts";

const tokens = new RefreshTokens(randomBytes(32));

Deno.test("RT1 a refresh token is 43 URL-safe characters and opens to its family and generation", () => {
  const first = tokens.first();
  assert.match(first.token, /^[A-Za-z0-9_-]{43}$/);
  assert.deepEqual(tokens.open(first.token), { family: first.family, generation: 0 });
});

Deno.test("the tokens of one session share nothing a holder could see", () => {
  let token = tokens.first().token;
  const seen = [token];
  for (let i = 1; i <= 200; i++) {
    const next = tokens.next(token, { attemptId: null });
    assert.deepEqual(tokens.open(next.token), { family: tokens.open(token)?.family, generation: i });
    seen.push(token = next.token);
  }
  for (let position = 0; position < 43; position++) {
    const chars = new Set(seen.map((text) => text[position]));
    // 201 draws from 64 characters (16 at the last place): a fixed or nearly fixed place would stand out.
    assert.ok(chars.size > 10, `place ${position} has only ${chars.size} different characters`);
  }
});

Deno.test("with an attemptId the next token follows from it, without one it never repeats", () => {
  const { token } = tokens.first();
  const next = (attemptId: string | null) => tokens.next(token, { attemptId }).token;
  assert.equal(next("attempt-1"), next("attempt-1"));
  assert.notEqual(next("attempt-1"), next("attempt-2"));
  assert.notEqual(next(null), next(null));
});

Deno.test("under another key a token opens to another family", () => {
  const first = tokens.first();
  const other = new RefreshTokens(randomBytes(32));
  assert.notEqual(other.open(first.token)?.family, first.family);
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
  Deno.test(`${JSON.stringify(text)} is not a refresh token`, () => {
    assert.equal(tokens.open(text), null);
    assert.throws(() => tokens.next(text, { attemptId: null }), RangeError);
  });
}
