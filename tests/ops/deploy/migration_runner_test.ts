/** The runner of migrations by itself: what is marked to run is run, whenever it was marked. */
import assert from "node:assert/strict";
import { SystemCallError, type SystemCalls } from "../../../mod/functions/system_calls.ts";
import { MigrationRunner } from "../../../mod/ops/deploy/migration_runner.ts";
import type { MigrationSteps, TakenStep } from "../../../mod/ops/deploy/migration_steps.ts";
import { until } from "../../support/waiting.ts";

const ID = "migration";

/** A migration of some steps, and the runner beside it. */
class World implements AsyncDisposable {
  marked = true;
  left = 3;
  taken = 0;
  /** Failures of the query of what is under way that are to come. */
  unreadable = 0;
  /** Called with each step before it is answered. */
  onStep = () => {};
  readonly logged: string[] = [];
  readonly runner: MigrationRunner;

  constructor() {
    const calls = {
      query: () =>
        this.unreadable-- > 0
          ? Promise.reject(new SystemCallError("underWay", { message: "busy", retryable: true, data: null }))
          : Promise.resolve(this.marked ? [ID] : []),
    } as unknown as SystemCalls;
    const steps = { take: () => this.#take() } as unknown as MigrationSteps;
    this.runner = new MigrationRunner({ calls, steps, log: (level) => void this.logged.push(level) });
  }

  /** As the step in the isolate does: nothing where it is not marked, and no longer marked with the last one. */
  #take(): Promise<TakenStep> {
    const halted = !this.marked;
    if (!halted) {
      this.taken++;
      this.left--;
    }
    const done = this.left === 0;
    if (done) this.marked = false;
    this.onStep();
    return Promise.resolve({ documents: this.taken, done, halted, rows: 1 });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.runner[Symbol.asyncDispose]();
  }
}

Deno.test("MG5 a start goes on with what is marked", async () => {
  await using world = new World();
  await world.runner.start();
  await until(() => world.left === 0);
  assert.deepEqual([world.taken, world.marked, world.logged], [3, false, []]);
});

Deno.test("MG5 one that is marked again behind its last step is run, not left marked", async () => {
  await using world = new World();
  world.marked = false;
  // The answer to the step that found it stopped is not yet seen when somebody has it run again.
  world.onStep = () => {
    world.onStep = () => {};
    world.marked = true;
    world.runner.run(ID);
  };
  world.runner.run(ID);
  await until(() => world.left === 0);
  assert.deepEqual([world.taken, world.marked], [3, false]);
});

Deno.test("MG5 where a start cannot read what is under way it looks again later", async () => {
  await using world = new World();
  world.unreadable = 1;
  await world.runner.start();
  assert.deepEqual([world.taken, world.logged], [0, ["error"]]);
  await until(() => world.left === 0);
  assert.equal(world.taken, 3);
});

Deno.test("MG5 a server that ends does not wait for what it would look for again", async () => {
  const world = new World();
  world.unreadable = 1_000;
  await world.runner.start();
  await world[Symbol.asyncDispose]();
  assert.equal(world.taken, 0);
});
