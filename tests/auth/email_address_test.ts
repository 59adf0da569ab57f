import assert from "node:assert/strict";
import { emailAsGiven, normalizedEmail } from "../../mod/auth/email_address.ts";

const cases: [text: string, stored: string | null][] = [
  ["a@example.com", "a@example.com"],
  ["  Mixed.Case+tag@Example.COM ", "mixed.case+tag@example.com"],
  ["o'brien@example.co.uk", "o'brien@example.co.uk"],
  ["user@münchen.de", "user@xn--mnchen-3ya.de"],
  ["jöhn@example.com", "jöhn@example.com"],
  // The Kelvin sign becomes k, so the mail is sent to the address with k, not to the one typed.
  ["mi\u212ae@example.com", "mike@example.com"],
  [`${"a".repeat(64)}@example.com`, `${"a".repeat(64)}@example.com`],
  [`${"a".repeat(65)}@example.com`, null],
  [`a@${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(63)}.${"e".repeat(63)}.com`, null],
  ["", null],
  ["plain", null],
  ["@example.com", null],
  ["a@", null],
  ["a@b", null],
  ["a@@example.com", null],
  ["a b@example.com", null],
  ["a@exa mple.com", null],
  ["a@example.com\nBcc: b@example.com", null],
  ["a\n@example.com", null],
  ["a,b@example.com", null],
  ["<a@example.com>", null],
  ['"a b"@example.com', null],
  [".a@example.com", null],
  ["a.@example.com", null],
  ["a..b@example.com", null],
  ["a@-example.com", null],
  ["a@example..com", null],
  ["a@example.com.", null],
  ["a@127.0.0.1", null],
  ["a@[127.0.0.1]", null],
  ["a@example.com/path", null],
  ["a@example.com:25", null],
  ["a\u200b@example.com", null],
  ["a\ud800@example.com", null],
];
for (const [text, stored] of cases) {
  Deno.test(`email ${JSON.stringify(text.slice(0, 60))} is ${stored === null ? "refused" : "stored as its normal form"}`, () => {
    assert.equal(normalizedEmail(text), stored);
    if (stored !== null) assert.equal(normalizedEmail(stored), stored);
  });
}

for (
  const [text, stored] of [
    ["kim@example.com", "kim@example.com"],
    ["Kim@Example.COM", "kim@example.com"],
    ["jöhn@example.com", "jöhn@example.com"],
    ["user@münchen.de", "user@xn--mnchen-3ya.de"],
    ["user@xn--mnchen-3ya.de", "user@xn--mnchen-3ya.de"],
    ["user@faß.de", "user@xn--fa-hia.de"],
    ["\u212aim@example.com", null],
    ["mi\u212ae@example.com", null],
    ["kim@\u212aelvin.example", null],
    ["\uff4bim@example.com", null],
    ["J\u00d6HN@example.com", null],
    ["jo\u0308hn@example.com", null],
    ["user@mu\u0308nchen.de", null],
    ["user@M\u00dcNCHEN.de", null],
    [" kim@example.com", null],
    ["kim@example.com\u00a0", null],
    ["plain", null],
  ] as const
) {
  Deno.test(`OL5 an issuer's address ${JSON.stringify(text)} ${stored === null ? "is ignored" : "is stored as given"}`, () => {
    assert.equal(emailAsGiven(text), stored);
  });
}
