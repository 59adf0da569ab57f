import assert from "node:assert/strict";
import { argon2id } from "hash-wasm";
import {
  checkedPassword,
  currentCost,
  normalizedPassword,
  PasswordHasher,
} from "../../mod/auth/passwords.ts";
import { ServiceError } from "../../mod/errors.ts";

const cheap = { memoryKiB: 64, passes: 1, lanes: 1 };
const hasher = new PasswordHasher({ cost: cheap });

Deno.test("a password is stored as argon2id with the cost that OWASP recommends", async () => {
  const stored = await new PasswordHasher().hash("correct horse");
  assert.match(stored, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
  assert.equal(await new PasswordHasher().verify("correct horse", stored), true);
  assert.equal(await new PasswordHasher().verify("correct horsf", stored), false);
});

Deno.test("hashes of another implementation are accepted", async () => {
  const salt = new Uint8Array(16).fill(3);
  const stored = await argon2id({
    password: "grüße",
    salt,
    parallelism: 2,
    iterations: 1,
    memorySize: 64,
    hashLength: 24,
    outputType: "encoded",
  });
  assert.equal(await hasher.verify("grüße", stored), true);
  assert.equal(await hasher.verify("gruesse", stored), false);
});

Deno.test("the same password has another hash each time", async () => {
  assert.notEqual(await hasher.hash("same"), await hasher.hash("same"));
});

Deno.test("no account, no password and a broken hash are refused like a wrong password", async () => {
  const stored = await hasher.hash("password");
  assert.equal(await hasher.verify("password", null), false);
  assert.equal(await hasher.verify(null, stored), false);
  assert.equal(await hasher.verify(null, null), false);
  assert.equal(await hasher.verify("password", "$2b$10$something"), false);
});

Deno.test("a stored hash of excessive cost is not computed", async () => {
  const huge = (await hasher.hash("password")).replace("m=64", "m=9999999");
  assert.equal(await hasher.verify("password", huge), false);
});

Deno.test("a hash of a lower cost than the current one needs a rehash", async () => {
  const stored = await hasher.hash("password");
  assert.equal(hasher.needsRehash(stored), false);
  assert.equal(new PasswordHasher().needsRehash(stored), true);
  assert.equal(new PasswordHasher({ cost: { ...currentCost, passes: 1 } }).needsRehash(stored), true);
  assert.equal(hasher.needsRehash("not a hash"), true);
});

Deno.test("hashes beyond the bound wait, and beyond the queue are refused", async () => {
  const busy = new PasswordHasher({ cost: cheap, atOnceMax: 1, queuedMax: 2 });
  const results = await Promise.allSettled(Array.from({ length: 5 }, () => busy.hash("password")));
  assert.deepEqual(results.map((result) => result.status), [
    "fulfilled",
    "fulfilled",
    "fulfilled",
    "rejected",
    "rejected",
  ]);
  const [refused] = results.flatMap((result) => result.status === "rejected" ? [result.reason] : []);
  assert.ok(refused instanceof ServiceError);
  assert.equal(refused.code, "overloaded");
  assert.match(await busy.hash("password"), /^\$argon2id/);
});

Deno.test("AE15 a password has 8 to 256 user-perceived characters", () => {
  const code = (password: string) => {
    try {
      checkedPassword(password);
      return "ok";
    } catch (error) {
      return error instanceof ServiceError ? error.code : error;
    }
  };
  assert.equal(code("1234567"), "weak_password");
  assert.equal(code("12345678"), "ok");
  assert.equal(code("👍".repeat(7)), "weak_password");
  assert.equal(code("👍".repeat(8)), "ok");
  assert.equal(code("x".repeat(256)), "ok");
  assert.equal(code("x".repeat(257)), "invalid_password");
  assert.equal(code("12345678\ud800"), "invalid_password");
});

Deno.test("a password typed with combining marks is the one typed without", () => {
  assert.equal(checkedPassword("mu\u0308nchen-1"), checkedPassword("m\u00fcnchen-1"));
  assert.equal(normalizedPassword("x".repeat(257)), null);
});
