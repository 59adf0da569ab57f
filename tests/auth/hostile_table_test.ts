/** Counts the attacks on sign-in with external providers and on tokens of other issuers. */
import assert from "node:assert/strict";
import { brokenKeySets, tokenVectors } from "./issuers/token_vectors.ts";
import { addressVectors, answerVectors, redirectVectors, stateVectors } from "./oauth/hostile_vectors.ts";

/** The test of each table tries its attacks: none may sign a user in. */
const table = [
  ...[...stateVectors, ...answerVectors, ...addressVectors, ...tokenVectors].map(({ name }) => name),
  ...redirectVectors.map((redirect) => `OA4 a redirect to ${JSON.stringify(redirect)}`),
  ...Object.keys(brokenKeySets).map((what) => `XI3 a key set: ${what}`),
];

/** Words of names that must exist. */
const kinds: Readonly<Record<string, RegExp>> = {
  "a state that is another's": /the state of another sign-in/,
  "a cookie that is another's": /the cookie of another sign-in/,
  "login CSRF": /login CSRF/,
  "mix-up of two providers": /finished at another \(mix-up\)/,
  "an answer that names another issuer": /names another issuer \(mix-up\)/,
  "replay of a code": /a code that was used before/,
  "injection of a code": /code injection/,
  "a missing nonce": /no nonce/,
  "a wrong audience of an ID token": /OA14 another audience/,
  "a wrong audience of a token": /XI6 another audience/,
  "the algorithm none": /XI3 the algorithm none/,
  "the algorithm none in an ID token": /OA14 the algorithm none/,
  "HS256 with the public key": /XI3 AT5 the public key as a secret/,
  "HS256 with the public key, in an ID token": /OA14 the public key's PEM as a secret/,
  "HS256 with the app's secret": /the app's own secret as the key/,
  "a huge name of a key": /XI3 an endless name of a key/,
  "a huge name of a key in an ID token": /OA14 a huge name of a key/,
  "keys that are down": /XI3 a key set: down/,
  "keys that are slow": /XI3 a key set: slow/,
  "keys of 10 MB": /XI3 a key set: 10 MB/,
  "keys that were rotated": /removed from its set/,
  "redirects into the network behind": /a redirect into the network behind/,
  "open redirects": /OA4 a redirect to "https:\/\/evil/,
  "open redirects by a user name": /app\.example\.com@evil/,
  "an address taken over at the provider": /changed hands at the provider/,
};

Deno.test("OA2 OA3 OA4 OA7 OA14 OL2 XI3 at least 80 vectors are tried, each once, and at least one of every known kind", async (t) => {
  assert.equal(new Set(table).size, table.length, "two have one name");
  assert.ok(table.length >= 80, `${table.length} vectors`);
  for (const [kind, words] of Object.entries(kinds)) {
    await t.step(kind, () => assert.ok(table.some((name) => words.test(name)), kind));
  }
});
