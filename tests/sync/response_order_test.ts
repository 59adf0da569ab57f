/** The order of a MutationResponse and the Transition with its writes, with a real host and fake isolates. */
import assert from "node:assert/strict";
import { rowBody } from "../../mod/engine/journal/journal_row.ts";
import { IsolateHost } from "../../mod/functions/host/host.ts";
import type { CommitSource } from "../../mod/functions/host/mod.ts";
import type { Group } from "../../mod/functions/wire/messages.ts";
import { encodeRecord } from "../../mod/functions/wire/replay_record.ts";
import { Hub } from "../../mod/sync/hub.ts";
import { FakeStarter } from "../functions/host/support/fake_isolate.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { until } from "../support/waiting.ts";
import { FakeAuthenticator } from "./support/fake_authenticator.ts";
import { TestSocket } from "./support/test_socket.ts";

const SESSION = "01890000-0000-7000-8000-000000000001";
/** The history position of an empty database. */
const START = { generation: "g", seq: 0, ts: 0, sum: "" };

/** A socket with a query, on a hub with fake isolates. */
class World implements AsyncDisposable {
  readonly starter = new FakeStarter();
  readonly host: IsolateHost;
  readonly socket: TestSocket;

  private constructor(host: IsolateHost, { starter, clock }: Pick<World, "starter"> & { clock: FakeClock }) {
    this.starter = starter;
    this.host = host;
    const hub = new Hub({ host, authenticator: new FakeAuthenticator(), dev: false, clock });
    this.socket = new TestSocket(hub);
  }

  static async start(commitSource: CommitSource): Promise<World> {
    const starter = new FakeStarter();
    starter.functions = [
      ["list", { kind: "query", visibility: "public" }],
      ["add", { kind: "mutation", visibility: "public" }],
    ];
    starter.reached = START;
    const clock = new FakeClock();
    const host = new IsolateHost({
      starter,
      clock,
      log: () => {},
      batchPrefix: "test",
      cores: 1,
      commitSource,
    });
    await host.begin();
    const world = new World(host, { starter, clock });
    world.socket.connect({ sessionId: SESSION });
    world.socket.add(0, "list");
    await until(() => starter.of("reader")[0]?.sent.length === 1);
    world.socket.mutate(0, "add");
    return world;
  }

  /** Answers the query, run in a snapshot that includes commits up to `ts`. */
  answerQuery(ts: number): void {
    const reader = this.starter.newest("reader");
    const { batch } = reader.last("RunQueryBatch");
    reader.sends({ type: "Pinned", batch, ts });
    const answer = {
      outcome: { value: 0, logLines: [] },
      readSet: {},
      scope: "nothing",
      nondeterministic: false,
      durationMs: 1,
    } as const;
    reader.sends({ type: "QueryBatchAnswers", batch, from: 0, answers: [answer], last: true }, [String(ts)]);
  }

  async assertOrder(): Promise<void> {
    const { socket } = this;
    await until(() => socket.all("Transition").length > 0);
    assert.deepEqual(socket.take().map(({ type }) => type), ["MutationResponse", "Transition"]);
    assert.deepEqual([socket.version.ts, socket.value(0)], [1, 1]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.host[Symbol.asyncDispose]();
  }
}

Deno.test("SG4 a MutationResponse precedes the Transition with its writes, even if a query saw them first", async () => {
  await using world = await World.start({ from: "writer" });
  const writer = world.starter.newest("writer");
  await until(() => writer.sent.length === 1);
  // The writer has committed, and the query sees that, but main has not received the group.
  world.answerQuery(1);
  const { batch } = writer.last("Batch");
  const group: Group = {
    type: "Group",
    batch,
    from: 0,
    answers: [[1, 0]],
    tables: [],
    entries: [[1, 0, []]],
    ts: 1,
  };
  writer.sends(group, ["null"]);
  await world.assertOrder();
});

Deno.test("[SG4] [PG7] on a server that applies rows it precedes the Transition even if the leader's answer arrives later", async () => {
  const asked: string[] = [];
  await using world = await World.start({
    from: "rows",
    leader: {
      mutate({ replay }) {
        asked.push(`${replay?.requestId}`);
        return new Promise(() => {});
      },
    },
  });
  await until(() => asked.length === 1);
  const record = (session: string, principal: string, answer: string) => ({
    ...{ session, principal, oldest: 0, ts: [1], chars: answer.length },
    answers: [answer],
  });
  const others = [
    record("another", "", encodeRecord({ ok: true, text: '"another session"' }, 1)),
    record(SESSION, "pu1", encodeRecord({ ok: true, text: '"another caller"' }, 1)),
  ];
  const records = [...others, record(SESSION, "", encodeRecord({ ok: true, text: '"added"' }, 1))];
  const entries = [{ ts: 1, at: 0, changes: [] }];
  const body = rowBody({ entries, records, lastCreationTime: 0, catalog: null });
  const applied = world.host.rows?.apply([{ seq: 1, tsBefore: 0, ts: 1, at: 0, sum: "", body }]);
  const writer = world.starter.newest("writer");
  await until(() => writer.sent.length === 1);
  world.answerQuery(1);
  writer.sends({
    type: "RowsApplied",
    tables: [],
    changed: { tables: [], entries: [] },
    reached: { ...START, seq: 1, ts: 1 },
  });
  await applied;
  await world.assertOrder();
  const [response] = world.socket.all("MutationResponse");
  assert.deepEqual(response?.success && [response.result, response.ts], ["added", 1]);
});
