/** Fair scheduling of requests to the app's routes. */
import assert from "node:assert/strict";
import type { FunctionCall } from "../../../mod/functions/host_port.ts";
import { RouteTable } from "../../../mod/functions/host/runners/route_table.ts";
import { RouteRequests } from "../../../mod/functions/host/runners/route_requests.ts";
import { anonymous } from "../../../mod/functions/identity.ts";
import { failed, type Outcome } from "../../../mod/functions/outcome.ts";
import { routeLimits } from "../../../mod/functions/limits.ts";

const { requestsMax, requestsWaitingMax } = routeLimits;

class Setup {
  /** Calls in the runners, in the order of their arrival. */
  readonly running: { readonly call: FunctionCall; readonly end: (outcome: Outcome) => void }[] = [];
  readonly #requests = new RouteRequests({
    routes: () => new RouteTable([]),
    run: (call) => new Promise((end) => this.running.push({ call, end })),
  });

  ask(who: string) {
    return this.#requests.respond({
      request: new Request("http://localhost/route"),
      route: "route",
      identity: anonymous,
      caller: { queueKey: who, blame: who },
    });
  }

  of(who: string): number {
    return this.running.filter(({ call }) => call.caller?.blame === who).length;
  }

  async end(count = 1): Promise<void> {
    for (const { end } of this.running.splice(0, count)) end(failed("internal", "over"));
    await settled();
  }
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setTimeout(resolve, 0));
}

Deno.test("FA5 requests of other callers run before the waiting ones of a busy caller", async () => {
  const setup = new Setup();
  const many = Array.from({ length: 2 * requestsMax }, () => setup.ask("many"));
  await settled();
  assert.equal(setup.of("many"), requestsMax / 2);
  const others = Array.from({ length: requestsMax / 2 }, (_, n) => setup.ask(`other ${n % 40}`));
  await settled();
  assert.equal(setup.running.length, requestsMax);
  const late = setup.ask("late");
  await settled();
  assert.equal(setup.of("late"), 0);
  await setup.end();
  assert.equal(setup.of("late"), 1, "his turn is the next");
  while (setup.running.length > 0) await setup.end(requestsMax);
  const answers = await Promise.all([...many, ...others, late]);
  assert(answers.every((answer) => !answer.ok && answer.error.message === "over"));
});

Deno.test("FA5 a full queue drops requests of the caller with the most", async () => {
  const setup = new Setup();
  const many = Array.from({ length: requestsMax / 2 + requestsWaitingMax }, () => setup.ask("many"));
  const more = await setup.ask("many");
  assert(!more.ok && more.error.retryable);
  const others = Array.from({ length: requestsMax / 2 + 1 }, (_, n) => setup.ask(`other ${n % 2}`));
  await settled();
  const last = many.at(-1);
  const first = await last;
  assert(first?.ok === false && first.error.retryable, "the newest of the many gave way");
  while (setup.running.length > 0) await setup.end(requestsMax);
  const answers = await Promise.all([...many.slice(0, -1), ...others]);
  assert(answers.every((answer) => !answer.ok && answer.error.message === "over"));
});
