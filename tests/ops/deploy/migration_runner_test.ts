/** The migration runner on its own: every marked migration runs. */
import assert from "node:assert/strict";
import { SystemCallError, type SystemCalls } from "../../../mod/functions/system_calls.ts";
import {
  type CompletedStep,
  MigrationRunner,
  type MigrationSteps,
} from "../../../mod/ops/deploy/migrations.ts";
import { until } from "../../support/waiting.ts";

const ID = "migration";

/** A migration with some steps, and its runner. */
class World implements AsyncDisposable {
  marked = true;
  left = 3;
  taken = 0;
  /** Number of upcoming failures of the query for running migrations. */
  unreadable = 0;
  /** Called with each step before it is answered. */
  onStep = () => {};
  readonly logged: string[] = [];
  readonly runner: MigrationRunner;

  constructor() {
    const calls = {
      queryInWriter: () =>
        this.unreadable-- > 0
          ? Promise.reject(
            new SystemCallError("_system/deploy:resumableMigrations", {
              message: "busy",
              retryable: true,
              data: null,
            }),
          )
          : Promise.resolve(this.marked ? [ID] : []),
    } as unknown as SystemCalls;
    const steps = { take: () => this.#take() } as unknown as MigrationSteps;
    this.runner = new MigrationRunner({ calls, steps, log: (level) => void this.logged.push(level) });
  }

  /** Like the step in the isolate: does nothing unless marked, and the last step removes the mark. */
  #take(): Promise<CompletedStep> {
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

Deno.test("MG5 a start resumes marked migrations", async () => {
  await using world = new World();
  await world.runner.start();
  await until(() => world.left === 0);
  assert.deepEqual([world.taken, world.marked, world.logged], [3, false, []]);
});

Deno.test("MG5 a migration marked again after its last step is run", async () => {
  await using world = new World();
  world.marked = false;
  // It is started again before its stop was reported.
  world.onStep = () => {
    world.onStep = () => {};
    world.marked = true;
    world.runner.run(ID);
  };
  world.runner.run(ID);
  await until(() => world.left === 0);
  assert.deepEqual([world.taken, world.marked], [3, false]);
});

Deno.test("MG5 a start that cannot read running migrations retries later", async () => {
  await using world = new World();
  world.unreadable = 1;
  await world.runner.start();
  assert.deepEqual([world.taken, world.logged], [0, ["error"]]);
  await until(() => world.left === 0);
  assert.equal(world.taken, 3);
});

Deno.test("MG5 a stop does not wait for these retries", async () => {
  const world = new World();
  world.unreadable = 1_000;
  await world.runner.start();
  await world[Symbol.asyncDispose]();
  assert.equal(world.taken, 0);
});
