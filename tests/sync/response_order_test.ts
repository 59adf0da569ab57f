/** The order of a MutationResponse and the Transition with its writes, with a real host over fake isolates. */
import assert from "node:assert/strict";
import { IsolateHost } from "../../mod/functions/host/host.ts";
import type { Group } from "../../mod/functions/wire/messages.ts";
import { Hub } from "../../mod/sync/hub.ts";
import { FakeStarter } from "../functions/host/support/fake_isolate.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { until } from "../support/waiting.ts";
import { FakeAuthenticator } from "./support/fake_authenticator.ts";
import { TestSocket } from "./support/test_socket.ts";

Deno.test("SG4 a MutationResponse precedes the Transition with its writes, even if a query saw them first", async () => {
  const starter = new FakeStarter();
  starter.functions = [["list", { kind: "query", visibility: "public" }], ["add", {
    kind: "mutation",
    visibility: "public",
  }]];
  const clock = new FakeClock();
  await using host = new IsolateHost({
    starter,
    clock,
    log: () => {},
    batchPrefix: "test",
    cores: 1,
  });
  await host.begin();
  const hub = new Hub({ host, authenticator: new FakeAuthenticator(), dev: false, clock });
  const [writer, reader] = [starter.newest("writer"), starter.newest("reader")];
  const socket = new TestSocket(hub);
  socket.connect();

  /** Answers the newest query, run in a snapshot that includes commits up to `ts`. */
  const answerQuery = (ts: number) => {
    const { wave } = reader.last("RunQueryBatch");
    reader.sends({ type: "Pinned", wave, ts });
    const answer = {
      outcome: { value: 0, logLines: [] },
      readSet: {},
      scope: "nothing",
      nondeterministic: false,
      durationMs: 1,
    } as const;
    reader.sends({ type: "QueryBatchAnswers", wave, from: 0, answers: [answer], last: true }, [String(ts)]);
  };
  const commit = (ts: number) => {
    const { batch } = writer.last("Batch");
    const group: Group = {
      type: "Group",
      batch,
      from: 0,
      answers: [[ts, 0]],
      tables: [],
      entries: [[ts, 0, []]],
      ts,
    };
    writer.sends(group, ["null"]);
  };

  socket.add(0, "list");
  await until(() => reader.sent.length === 1);
  socket.mutate(0, "add");
  await until(() => writer.sent.length === 1);
  // The writer has committed, and the query sees that, but main has not received the group.
  answerQuery(1);
  commit(1);
  await until(() => socket.all("Transition").length > 0);
  assert.deepEqual(socket.take().map(({ type }) => type), ["MutationResponse", "Transition"]);
  assert.deepEqual([socket.version.ts, socket.value(0)], [1, 1]);
});
