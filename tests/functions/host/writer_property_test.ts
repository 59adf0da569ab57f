/** Random deaths of the writer at every stage, over a model of the database. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { frameText } from "../../../mod/functions/frames.ts";
import type { Batch, Group } from "../../../mod/functions/wire.ts";
import { settled } from "./support/fake_clock.ts";
import type { FakeIsolate } from "./support/fake_isolate.ts";
import { resultOf, WriterWorld } from "./support/writer_world.ts";

/** What the writer does with the next group of its batch. */
type Step = "commit and tell" | "die running" | "die before the commit" | "die before telling";

interface Plan {
  readonly arriving: number;
  readonly groupCalls: number;
  readonly step: Step;
}

const plans = fc.array(
  fc.record<Plan>({
    arriving: fc.integer({ min: 0, max: 4 }),
    groupCalls: fc.integer({ min: 1, max: 3 }),
    step: fc.constantFrom<Step>(
      "commit and tell",
      "commit and tell",
      "die running",
      "die before the commit",
      "die before telling",
    ),
  }),
  { minLength: 1, maxLength: 60 },
);

/** The database of the model: calls that were committed, in order, so the position is the ts less one. */
class Model {
  readonly committed: string[] = [];
  readonly #world: WriterWorld;
  #isolate: FakeIsolate | null = null;
  #batch: Batch | null = null;
  #done = 0;

  constructor(world: WriterWorld) {
    this.#world = world;
  }

  /** Takes one step of the plan with the newest writer. */
  step({ groupCalls, step }: Plan): void {
    const { isolate } = this.#world;
    const batch = isolate.sent.at(-1);
    if (isolate.dead || batch?.type !== "Batch") return;
    if (isolate !== this.#isolate || batch !== this.#batch) this.#done = 0;
    this.#isolate = isolate;
    this.#batch = batch;
    const calls = batch.calls.slice(this.#done, this.#done + groupCalls);
    if (calls.length === 0) return;
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
    if (step === "die before telling") isolate.dies("killed");
    else isolate.says(group, segments);
  }
}

Deno.test("whenever the writer is killed, no call is lost, none runs twice, no commit is untold", async () => {
  await fc.assert(
    fc.asyncProperty(plans, async (plan) => {
      const world = new WriterWorld();
      await world.writer.start();
      const model = new Model(world);
      const answers: { path: string; result: unknown; ts: number }[] = [];
      let calls = 0;
      const finish = new Array<Plan>(200).fill({ arriving: 0, groupCalls: 3, step: "commit and tell" });
      for (const step of [...plan, ...finish]) {
        for (let i = 0; i < step.arriving; i++) {
          const path = `call ${calls++}`;
          world.writer.mutate({
            udfPath: path,
            args: {},
            identity: { principal: null, userId: null, adminId: null, sessionId: null },
            origin: "client",
          }).then((answer) => answers.push({ path, result: resultOf(answer), ts: answer.ts }));
        }
        await settled();
        model.step(step);
        await world.clock.advance(step.step === "commit and tell" ? 0 : 1);
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
        world.told.filter((told) => !told.startsWith("answer")),
        model.committed.map((_, i) => `commit ${i + 1}`),
        "commits were told with gaps or twice",
      );
      await world.writer.close();
      assert.equal(world.clock.timers, 0);
    }),
    { numRuns: 200 },
  );
});
