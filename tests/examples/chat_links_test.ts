/** Addresses in messages of the chat, as links. */
import assert from "node:assert/strict";
import { pieces } from "../../examples/chat/app/linked_text.tsx";

const linksIn = (text: string) => pieces(text).filter(({ href }) => href !== null).map(({ href }) => href);

Deno.test("addresses of pages are links, without the punctuation of the sentence around them", () => {
  const cases: readonly (readonly [text: string, links: readonly string[]])[] = [
    ["see https://example.com/a_(b)?q=1.", ["https://example.com/a_(b)?q=1"]],
    ["(https://example.com/a) and http://localhost:3210!", [
      "https://example.com/a",
      "http://localhost:3210/",
    ]],
    ["HTTPS://EXAMPLE.COM", ["https://example.com/"]],
    ["nothing here", []],
    ["", []],
  ];
  for (const [text, links] of cases) {
    assert.deepEqual(linksIn(text), links, text);
    assert.equal(pieces(text).map((piece) => piece.text).join(""), text);
  }
});

Deno.test("only web addresses become links", () => {
  for (
    const text of [
      "javascript:alert(1)",
      "data:text/html,https:",
      "http://",
      "https://[",
      "file:///etc/passwd",
      "vbscript:https",
      "javascript://https",
      "<a href='javascript:x'>",
    ]
  ) {
    assert.deepEqual(linksIn(text), [], text);
  }
  // Text before a web address does not change its target.
  assert.deepEqual(linksIn("javascript:https://example.com/%0aalert(1)"), [
    "https://example.com/%0aalert(1)",
  ]);
});
