/** The argument by which clients ask for pages. */
import assert from "node:assert/strict";
import { paginationOpts } from "../../../mod/functions/api/pagination.ts";

Deno.test("HC11 paginationOpts ignores options of other clients", () => {
  const options = { cursor: null, numItems: 10 };
  assert.deepEqual(paginationOpts.parse({ ...options, id: 7, maximumRowsRead: 100 }), options);
  for (const wrong of [{ numItems: 0 }, { numItems: 1e9 }, { cursor: 5 }]) {
    assert.equal(paginationOpts.safeParse({ ...options, ...wrong }).success, false, JSON.stringify(wrong));
  }
});
