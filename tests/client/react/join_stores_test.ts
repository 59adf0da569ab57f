/** Several live queries as one store. */
import assert from "node:assert/strict";
import { joinStores } from "../../../mod/client/react/use_queries.ts";

Deno.test("a member that cannot be subscribed to leaves no subscription of the others behind", () => {
  let open = 0;
  const member = {
    subscribe: () => {
      open++;
      return () => {
        open--;
      };
    },
    read: () => undefined,
  };
  const full = {
    subscribe: () => {
      throw new RangeError("The client has all the queries it may have");
    },
    read: () => undefined,
  };
  const joined = joinStores([["a", member], ["b", member], ["c", full]]);
  assert.throws(() => joined.subscribe(() => {}), RangeError);
  assert.equal(open, 0);
  const end = joinStores([["a", member], ["b", member]]).subscribe(() => {});
  assert.equal(open, 2);
  end();
  assert.equal(open, 0);
});
