/** Copies of a mutation that is in flight. */
import assert from "node:assert/strict";
import { RequestsInFlight } from "../../../mod/functions/host/requests_in_flight.ts";
import type { MutationAnswer, MutationCall } from "../../../mod/functions/host_port.ts";
import { anonymous } from "../../../mod/functions/identity.ts";
import { unavailable } from "../../../mod/functions/outcome.ts";

function mutation(requestId: number | null, principal: string | null = null): MutationCall {
  const call = { udfPath: "a", args: {}, identity: { ...anonymous, principal }, origin: "client" } as const;
  return requestId === null ? call : { ...call, replay: { sessionId: "s", requestId } };
}

Deno.test("SG7 a duplicate of a mutation in flight waits for it and gets its outcome, even a failure", async () => {
  const inFlight = new RequestsInFlight();
  const runs: PromiseWithResolvers<MutationAnswer>[] = [];
  const start = () => {
    const run = Promise.withResolvers<MutationAnswer>();
    runs.push(run);
    return run.promise;
  };
  const [first, copy, ofAnother] = [mutation(1), mutation(1), mutation(1, "user")]
    .map((call) => inFlight.run(call, start));
  assert.equal(runs.length, 2, "another identity makes another request");
  const answer = { outcome: { ...unavailable("away"), logLines: ["logged"] }, ts: 7, replayed: false };
  for (const { resolve } of runs) resolve(answer);
  assert.deepEqual(await Promise.all([first, ofAnother]), [answer, answer]);
  assert.deepEqual(await copy, { outcome: unavailable("away"), ts: 7, replayed: true });
  // It is not stored: the next copy is looked up like any other.
  void inFlight.run(mutation(1), start);
  for (let i = 0; i < 2; i++) void inFlight.run(mutation(null), start);
  assert.equal(runs.length, 5);
});
