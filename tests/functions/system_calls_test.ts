/** The process in which queries of the service run. */
import assert from "node:assert/strict";
import type { Outcome } from "../../mod/functions/outcome.ts";
import { SystemCalls } from "../../mod/functions/system_calls.ts";
import { createApi } from "../../mod/protocol/api_reference.ts";
import type { healthFunctions } from "../../mod/ops/health/isolate_functions.ts";

const { last } = createApi<{ "_system/health": typeof healthFunctions }>().internal._system.health;

function callsOf(inWriter: Outcome | null): SystemCalls {
  return new SystemCalls({
    mutate: () => assert.fail("nothing is changed"),
    query: () => Promise.resolve({ ok: true, value: "2", logLines: [] }),
    ...(inWriter && { queryInWriter: () => Promise.resolve(inWriter) }),
  });
}

Deno.test("background work reads in the writer, and in a reader if the writer cannot commit or on a follower", async () => {
  assert.equal(await callsOf({ ok: true, value: "1", logLines: [] }).queryInWriter(last, {}), 1);
  const error = { kind: "internal", message: "The database could not commit", data: null } as const;
  assert.equal(
    await callsOf({ ok: false, error: { ...error, retryable: true }, logLines: [] }).queryInWriter(last, {}),
    2,
  );
  assert.equal(await callsOf(null).queryInWriter(last, {}), 2);
  await assert.rejects(
    callsOf({ ok: false, error, logLines: [] }).queryInWriter(last, {}),
    /could not commit/,
  );
});
