/** Random deaths of the writer at every stage, with a model of the database. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { frameText } from "../../../mod/functions/wire/segment_frames.ts";
import type { Batch, Group } from "../../../mod/functions/wire/messages.ts";
import { settled } from "../../support/fake_clock.ts";
import type { FakeIsolate } from "./support/fake_isolate.ts";
import { resultOf, WriterWorld } from "./support/writer_world.ts";

/** The writer's next step with a group of its batch. */
type Step = "commit and report" | "die running" | "die before the commit" | "die before the report";
/** Whether it reports that a batch is about to end, and the number of calls between the report and the end. */
type Early = { readonly reported: boolean; readonly arriving: number };

interface Plan {
  readonly arriving: number;
  readonly groupCalls: number;
  readonly step: Step;
  readonly early: Early;
}

const plans = fc.array(
  fc.record<Plan>({
    arriving: fc.integer({ min: 0, max: 4 }),
    groupCalls: fc.integer({ min: 1, max: 3 }),
    step: fc.constantFrom<Step>(
      "commit and report",
      "commit and report",
      "die running",
      "die before the commit",
      "die before the report",
    ),
    early: fc.record<Early>({ reported: fc.boolean(), arriving: fc.integer({ min: 0, max: 3 }) }),
  }),
  { minLength: 1, maxLength: 60 },
);

/** The database of the model: calls that were committed, in order, so the position is the ts less one. */
class Model {
  readonly committed: string[] = [];
  readonly #world: WriterWorld;
  #isolate: FakeIsolate | null = null;
  /** Batches the isolate has ended. */
  #ended = 0;
  /** Calls of the next one that are done. */
  #done = 0;

  constructor(world: WriterWorld) {
    this.#world = world;
  }

  /** Runs one step of the plan with the newest writer. `arrive` adds calls. */
  async step({ groupCalls, step, early }: Plan, arrive: (calls: number) => void): Promise<void> {
    const { isolate } = this.#world;
    if (isolate.dead) return;
    if (isolate !== this.#isolate) this.#ended = this.#done = 0;
    this.#isolate = isolate;
    const batches = isolate.sent.filter((message): message is Batch => message.type === "Batch");
    const batch = batches[this.#ended];
    if (batch === undefined) return;
    assert.ok(batches.length <= this.#ended + 2, "more than one batch was sent ahead");
    const calls = batch.calls.slice(this.#done, this.#done + groupCalls);
    const last = this.#done + calls.length === batch.calls.length;
    if (last && early.reported && step !== "die running") {
      arrive(early.arriving);
      await settled();
      isolate.sends({ type: "Committing", batch: batch.batch });
    }
    isolate.noted = step === "die running" ? { position: this.#done, startedAt: this.#done } : null;
    if (step === "die running" || step === "die before the commit") return isolate.dies("killed");
    const from = this.#done;
    for (const { udfPath } of calls) this.committed.push(udfPath);
    this.#done += calls.length;
    const ts = this.committed.length;
    const answers = calls.map((_, value): Group["answers"][number] => [ts - calls.length + 1 + value, value]);
    const segments = calls.map(({ udfPath }) => JSON.stringify(udfPath));
    const entries = answers.map(([ts]): Group["entries"][number] => [ts, 0, []]);
    const group: Group = { type: "Group", batch: batch.batch, from, answers, tables: [], entries, ts };
    this.#world.starter.ts = ts;
    this.#world.starter.lastGroup = frameText(group, segments);
    if (step === "die before the report") isolate.dies("killed");
    else isolate.sends(group, segments);
    if (last) {
      this.#ended++;
      this.#done = 0;
    }
  }
}

Deno.test("whenever the writer is killed, no call is lost or runs twice, and every commit is reported", async () => {
  await fc.assert(
    fc.asyncProperty(plans, async (plan) => {
      const world = new WriterWorld();
      await world.writer.start();
      const model = new Model(world);
      const answers: { path: string; result: unknown; ts: number }[] = [];
      let calls = 0;
      const finish = new Array<Plan>(200).fill({
        arriving: 0,
        groupCalls: 3,
        step: "commit and report",
        early: { reported: true, arriving: 0 },
      });
      const arrive = (count: number) => {
        for (let i = 0; i < count; i++) {
          const path = `call ${calls++}`;
          world.writer.mutate({
            udfPath: path,
            args: {},
            identity: { principal: null, userId: null, adminId: null, sessionId: null },
            origin: "client",
          }).then((answer) => answers.push({ path, result: resultOf(answer), ts: answer.ts }));
        }
      };
      for (const step of [...plan, ...finish]) {
        arrive(step.arriving);
        await settled();
        await model.step(step, arrive);
        await world.clock.advance(step.step === "commit and report" ? 0 : 1);
      }
      assert.equal(answers.length, calls, "calls without an answer");
      const succeeded = answers.filter(({ path, result }) => path === result);
      const failed = answers.filter(({ path, result }) => path !== result);
      for (const { result } of failed) assert.match(String(result), /ended its isolate/);
      for (const { path } of failed) {
        assert.ok(!model.committed.includes(path), `${path} failed and was committed`);
      }
      assert.deepEqual(
        succeeded.map(({ path, ts }) => [ts, path]).sort(([a], [b]) => Number(a) - Number(b)),
        model.committed.map((path, i) => [i + 1, path]),
        "what was answered is not what was committed",
      );
      assert.deepEqual(
        model.committed.map((path) => Number(path.slice(5))).every((n, i, all) =>
          i === 0 || n > (all[i - 1] ?? -1)
        ),
        true,
        "calls were committed out of order",
      );
      assert.deepEqual(
        world.reported.filter((reported) => !reported.startsWith("answer")),
        model.committed.map((_, i) => `commit ${i + 1}`),
        "commits were published with gaps or twice",
      );
      await world.writer.close();
      assert.equal(world.clock.timers, 0);
    }),
    { numRuns: 200 },
  );
});
