/** Errors of queries in React. */
import assert from "node:assert/strict";
import { FunctionError } from "syncline/client";
import { named, valueOf } from "../../../mod/client/react/use_query_store.ts";

const failed = (message: string, further: object = {}) =>
  new FunctionError(message, { udfPath: "tasks:list", errorData: null, logLines: [], ...further });

Deno.test("DV8 an error thrown by a hook names the query and any request", () => {
  const error = failed("Server Error", { errorId: "hn3v0k1c2f" });
  assert.throws(() => valueOf(error), (thrown) => {
    assert.ok(thrown instanceof FunctionError);
    assert.equal(thrown.message, "The query tasks:list failed: Server Error (request hn3v0k1c2f)");
    assert.deepEqual([thrown.udfPath, thrown.requestId, thrown.cause], ["tasks:list", "hn3v0k1c2f", error]);
    return true;
  });
  // Thrown again by the next render, it is the same.
  assert.equal(named(error), named(error));
  assert.equal(named(failed("No such index")).message, "The query tasks:list failed: No such index");
});

Deno.test("DV8 errors of the app, and errors without a query, are unchanged", () => {
  const own = failed("Ask to be let in", { errorData: { code: "not_yet", data: null } });
  const other = new TypeError("not JSON");
  assert.equal(named(own), own);
  assert.equal(named(other), other);
  assert.equal(valueOf(3), 3);
});
