/** Doc comments of functions, read from source text. */
import assert from "node:assert/strict";
import { docComments } from "../../../mod/functions/packages/doc_comments.ts";

Deno.test("doc comments belong to the declaration that follows, and others are left out", () => {
  const source = `/** The file. */
import { query } from "syncline/server";

/** Lists the *open* orders. */
export const open = query({});

/**
 * Adds an order.
 *
 *     add({ title: "Lamp" })
 *
 * @param title At most 80 characters.
 */
export const add = mutation({});

/* Not a doc comment. */
export const none = query({});

/** Removed code. */

export async function helper() {}
/** Internal, exported below. */
const renamed = query({});
/** The default. */
export default query({});
/***/
export const empty = query({});
export { renamed };
/** At the end of the file. */
`;
  assert.deepEqual(docComments(source), {
    open: "Lists the *open* orders.",
    add: 'Adds an order.\n\n    add({ title: "Lamp" })\n\n@param title At most 80 characters.',
    helper: "Removed code.",
    renamed: "Internal, exported below.",
    default: "The default.",
  });
});

Deno.test("long comments are cut, and a hostile source takes no time", () => {
  const { long = "" } = docComments(`/** ${"x".repeat(10_000)} */ export const long = 1;`);
  assert.equal(long.length, 4_000);
  const startedAt = performance.now();
  docComments("/**".repeat(300_000));
  docComments("/** ".repeat(300_000));
  docComments(`/** ${"*".repeat(500_000)}`);
  docComments(`/** a */${" ".repeat(500_000)}`);
  // Work that grows with the square of the length takes minutes.
  assert.ok(performance.now() - startedAt < 20_000);
});
