import assert from "node:assert/strict";
import fc from "fast-check";
import { DueQueue, type PendingJob } from "../../mod/scheduler/due_queue.ts";

function job(scheduledTime: number, creationTime: number): PendingJob {
  const id = `${scheduledTime}/${creationTime}` as PendingJob["id"];
  return { id, name: "f", scheduledTime, creationTime };
}

function inOrder(jobs: Iterable<PendingJob>): PendingJob[] {
  return [...jobs].sort((a, b) => a.scheduledTime - b.scheduledTime || a.creationTime - b.creationTime);
}

type Step =
  | { readonly kind: "add"; readonly time: number }
  | { readonly kind: "cancel"; readonly pick: number }
  | { readonly kind: "take"; readonly now: number };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("add" as const), time: fc.nat(20) }),
    fc.record({ kind: fc.constant("cancel" as const), pick: fc.nat() }),
    fc.record({ kind: fc.constant("take" as const), now: fc.nat(25) }),
  ),
  { maxLength: 120 },
);

Deno.test("jobs are read in database order even if few fit into memory", () => {
  fc.assert(fc.property(steps, fc.integer({ min: 1, max: 8 }), (all, jobsMax) => {
    /** Pending jobs in the database. */
    const waiting = new Map<string, PendingJob>();
    const queue = new DueQueue({ jobsMax });
    let created = 0;
    const load = () => {
      queue.beginLoad();
      const jobs = inOrder(waiting.values());
      queue.loaded(jobs.slice(0, jobsMax), { more: jobs.length > jobsMax });
    };
    for (const step of all) {
      if (step.kind === "add") {
        const added = job(step.time, ++created);
        waiting.set(added.id, added);
        queue.add(added);
      } else if (step.kind === "cancel") {
        const id = [...waiting.keys()][step.pick % Math.max(1, waiting.size)];
        if (id === undefined) continue;
        waiting.delete(id);
        queue.remove(id);
      } else {
        if (queue.incomplete) load();
        const [first] = inOrder(waiting.values());
        const expected = first !== undefined && first.scheduledTime <= step.now ? first : null;
        assert.deepEqual(queue.take(step.now), expected);
        if (expected !== null) waiting.delete(expected.id);
      }
      assert(queue.size <= jobsMax);
    }
  }));
});

Deno.test("a job that becomes pending during a load is not lost", () => {
  const queue = new DueQueue({ jobsMax: 10 });
  assert(queue.incomplete);
  queue.beginLoad();
  queue.add(job(50, 2));
  queue.loaded([job(10, 1)], { more: false });
  assert.equal(queue.take(100)?.id, "10/1");
  assert.equal(queue.take(100)?.id, "50/2");
  assert(!queue.incomplete);
});

Deno.test("jobs after the last loaded one are loaded later", () => {
  const queue = new DueQueue({ jobsMax: 10 });
  queue.beginLoad();
  queue.add(job(50, 2));
  queue.loaded([job(10, 1)], { more: true });
  queue.add(job(60, 3));
  queue.add(job(5, 4));
  assert.deepEqual([queue.take(100)?.id, queue.take(100)?.id, queue.take(100)], ["5/4", "10/1", null]);
  assert(queue.incomplete);
});
