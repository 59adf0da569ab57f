import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { blake3 } from "hash-wasm";
import { codeHash, issueCode, linkTokenHash } from "../../mod/auth/tokens/codes.ts";
import { sameSecret, TokenHasher } from "../../mod/auth/tokens/token_hash.ts";

const key = new Uint8Array(32).fill(7);
const hasher = await TokenHasher.create(key);

Deno.test("CO1 stored hashes are keyed BLAKE3 of the use and the secret", async () => {
  const expected = Buffer.from(await blake3("refresh\0secret", 256, key), "hex").toString("base64url");
  assert.equal(hasher.hash("refresh", "secret"), expected);
  assert.equal(hasher.hash("refresh", "secret"), expected);
});

Deno.test("hashes of different keys or uses differ", async () => {
  const other = await TokenHasher.create(new Uint8Array(32).fill(8));
  assert.notEqual(other.hash("refresh", "secret"), hasher.hash("refresh", "secret"));
  assert.notEqual(hasher.hash("code", "secret"), hasher.hash("refresh", "secret"));
});

Deno.test("CO1 a code is 6 digits and its link token 256 bits, each of use for its kind and address only", () => {
  const owner = { kind: "magic", email: "a@example.com" } as const;
  const issued = issueCode(hasher, owner);
  assert.match(issued.code, /^\d{6}$/);
  assert.match(issued.token, /^[A-Za-z0-9_-]{43}$/);
  const { code, token } = issued;
  assert.equal(codeHash(hasher, { ...owner, code }), issued.codeHash);
  assert.equal(codeHash(hasher, { ...owner, code: `${code.slice(0, 3)} ${code.slice(3)}` }), issued.codeHash);
  assert.notEqual(codeHash(hasher, { ...owner, kind: "reset", code }), issued.codeHash);
  assert.notEqual(codeHash(hasher, { ...owner, email: "b@example.com", code }), issued.codeHash);
  assert.equal(linkTokenHash(hasher, { kind: "magic", token }), issued.tokenHash);
  assert.notEqual(linkTokenHash(hasher, { kind: "verify", token }), issued.tokenHash);
});

Deno.test("codes keep their leading zeros and use the whole range", () => {
  const codes = Array.from(
    { length: 2_000 },
    () => issueCode(hasher, { kind: "verify", email: "a@b.cc" }).code,
  );
  assert.ok(codes.every((code) => /^\d{6}$/.test(code)));
  assert.equal(new Set(codes.map((code) => code[0])).size, 10);
});

Deno.test("secrets are equal only if all their characters are equal", () => {
  assert.equal(sameSecret("abc", "abc"), true);
  assert.equal(sameSecret("abc", "abd"), false);
  assert.equal(sameSecret("abc", "ab"), false);
  assert.equal(sameSecret("", ""), true);
});
