/** The dashboard's formatting of doc comments. */
import assert from "node:assert/strict";
import { docSections, inlineParts } from "../../dashboard/app/views/functions/doc_sections.ts";

Deno.test("a doc comment is divided into its description and its tags", () => {
  const { description, tags } = docSections(`Adds an order.

Its total is not checked, see user@example.com.
@param title - Shown to the customer,
  on two lines.
@param {number} total
@param [note="none"] Optional text.
@returns {string} The ID.
@throws UserError if the customer does not exist.
@example
\`\`\`ts
@decorated
await add();
\`\`\`
@internal`);
  assert.equal(description, "Adds an order.\n\nIts total is not checked, see user@example.com.");
  assert.deepEqual(tags.map(({ label, name, text, code }) => [name ?? label, text, code]), [
    ["title", "Shown to the customer,\n  on two lines.", false],
    ["total", "", false],
    ["note", "Optional text.", false],
    ["Returns", "The ID.", false],
    ["Throws", "UserError if the customer does not exist.", false],
    ["Example", "@decorated\nawait add();", true],
    ["Internal", "", false],
  ]);
});

Deno.test("a comment without tags is a description", () => {
  assert.deepEqual(docSections("Lists orders."), { description: "Lists orders.", tags: [] });
});

Deno.test("code spans and links are formatted", () => {
  assert.deepEqual(inlineParts("Takes `id`, see {@link list} and {@link https://a.example | the guide}."), [
    { text: "Takes ", code: false },
    { text: "id", code: true },
    { text: ", see ", code: false },
    { text: "list", code: true },
    { text: " and ", code: false },
    { text: "the guide", code: false },
    { text: ".", code: false },
  ]);
});
