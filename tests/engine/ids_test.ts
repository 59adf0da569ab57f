/** Ids: format, randomness, and detection of typing errors. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { decodeId, newId } from "../../mod/engine/mod.ts";

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const tableNumber = fc.integer({ min: 0, max: 2 ** 20 - 1 });

Deno.test("an id has 26 characters of the alphabet and contains its table's number", () => {
  fc.assert(fc.property(tableNumber, (number) => {
    const id = newId(number);
    assert.match(id, /^[0-9a-hjkmnp-tv-z]{26}$/);
    assert.deepEqual(decodeId(id), { tableNumber: number });
  }));
});

Deno.test("ids of one table share only their first four characters", () => {
  const ids = Array.from({ length: 5_000 }, () => newId(7));
  assert.equal(new Set(ids).size, ids.length);
  assert.equal(new Set(ids.map((id) => id.slice(0, 4))).size, 1);
  // Every random character has every value; the 19th pair has the remaining 6 bits.
  for (let place = 4; place < 24; place++) {
    const seen = new Set(ids.map((id) => id[place]));
    assert.equal(seen.size, place === 22 ? 2 : 32, `place ${place}`);
  }
});

Deno.test("a wrong character is always detected", () => {
  fc.assert(fc.property(tableNumber, fc.nat(25), fc.nat(30), (number, place, shift) => {
    const id = newId(number);
    const right = ALPHABET.indexOf(id.charAt(place));
    const wrong = ALPHABET.charAt((right + 1 + shift) % 32);
    assert.equal(decodeId(id.slice(0, place) + wrong + id.slice(place + 1)), null);
  }));
});

Deno.test("a swap of neighbours is always detected", () => {
  fc.assert(fc.property(tableNumber, fc.nat(24), (number, place) => {
    const id = newId(number);
    fc.pre(id[place] !== id[place + 1]);
    const swapped = id.slice(0, place) + id.charAt(place + 1) + id.charAt(place) + id.slice(place + 2);
    assert.equal(decodeId(swapped), null);
  }));
});

Deno.test("other strings decode to null", () => {
  const id = newId(1);
  for (
    const text of [
      "",
      "x",
      id.toUpperCase(),
      id.slice(1),
      `${id}0`,
      ` ${id.slice(1)}`,
      `${id.slice(0, 25)}\uffff`,
      "u".repeat(26),
    ]
  ) {
    assert.equal(decodeId(text), null, JSON.stringify(text));
  }
  for (const other of [null, undefined, 1, {}, [id]]) assert.equal(decodeId(other as never), null);
  fc.assert(fc.property(fc.string({ minLength: 26, maxLength: 26 }), (text) => {
    assert.equal(decodeId(text), null);
  }));
});

Deno.test("table numbers out of range are refused", () => {
  for (const number of [-1, 2 ** 20, 1.5, NaN]) assert.throws(() => newId(number), RangeError);
});
