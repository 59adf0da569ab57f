/** `kill -9` of the server and of the writer: scheduled mutations run exactly once, scheduled actions at most once. */
import assert from "node:assert/strict";
import { killAll, processTree, writerOf } from "../support/processes/process_tree.ts";
import { ServerProcess } from "../support/processes/server_process.ts";
import { random, rounds as roundsWanted, seed } from "../durability/support/rounds.ts";
import { pause, until } from "../support/waiting.ts";
import { TempFolder } from "../support/temp_folder.ts";

const JOBS = 200;
/** Each round starts a server twice. */
const rounds = Math.ceil(roundsWanted / 2);
const FUNCTIONS = "tests/scheduler/functions";
/** On a busy machine the writer may pause for seconds, and no other mutation may time out then. */
const flags = ["--mutation-timeout", "15s"];

interface Outcome {
  readonly runs: number[];
  readonly begun: number[];
  readonly ended: number[];
  readonly jobs: {
    readonly name: string;
    readonly n: number;
    readonly state: { readonly kind: string; readonly error?: string };
  }[];
}

async function untilNothingIsOpen(server: ServerProcess): Promise<void> {
  await until(async () => await server.call("query", "work:openJobs") === 0, {
    what: "no job is open",
    everyMs: 20,
  });
}

function checkMutations({ runs, jobs }: Outcome, label: string): void {
  const inOrder = [...runs].sort((a, b) => a - b);
  assert.deepEqual(inOrder, Array.from({ length: JOBS }, (_, n) => n), `${label}: each exactly once`);
  const ends = jobs.filter(({ name }) => name === "work:run").map(({ state }) => state.kind);
  assert.deepEqual(ends, new Array(JOBS).fill("success"), label);
}

/** Returns the number of interrupted actions. */
function checkActions({ begun, ended, jobs }: Outcome, label: string): number {
  assert.equal(new Set(begun).size, begun.length, `${label}: an action began twice`);
  const actions = jobs.filter(({ name }) => name === "work:act");
  assert.equal(actions.length, JOBS / 10, label);
  let interrupted = 0;
  for (const { n, state } of actions) {
    if (state.kind === "success") {
      assert(begun.includes(n) && ended.includes(n), `${label}: action ${n} did not do what it sends`);
    } else {
      assert.match(state.error ?? "", /^Interrupted|ended its isolate/, `${label}: action ${n}`);
      interrupted++;
    }
  }
  return interrupted;
}

Deno.test("scheduled mutations run exactly once and actions at most once through kill -9 of the server", async () => {
  await using dataFolder = new TempFolder();
  const dataDir = dataFolder.path;
  let interrupted = 0;
  for (let round = 0; round < rounds; round++) {
    const label = `seed ${seed}, round ${round}`;
    const server = await ServerProcess.start({ dataDir, functions: FUNCTIONS, flags });
    await server.call("mutation", "work:plan", { round, count: JOBS, inMs: 0, everyMs: 3, actions: true });
    await pause(random() * 500);
    const isolates = (await processTree(server.pid)).slice(1);
    // In every other round only the main process is killed, and the isolates notice.
    await killAll(round % 2 === 0 ? [server.pid, ...isolates] : [server.pid]);
    await server.kill();
    await using next = await ServerProcess.start({ dataDir, functions: FUNCTIONS, flags });
    await untilNothingIsOpen(next);
    const outcome = await next.call("query", "work:outcome", { round }) as Outcome;
    checkMutations(outcome, label);
    interrupted += checkActions(outcome, label);
  }
  // deno-lint-ignore no-console -- shows whether the kills hit relevant moments
  console.log(`${interrupted} of ${rounds * JOBS / 10} actions were cut off`);
});

Deno.test("scheduled mutations run exactly once through kill -9 of the writer, and a stuck one affects only itself", async () => {
  await using dataFolder = new TempFolder();
  const dataDir = dataFolder.path;
  await using server = await ServerProcess.start({ dataDir, functions: FUNCTIONS, flags });
  for (let round = 0; round < rounds; round++) {
    const plan = { round, count: JOBS, inMs: 0, everyMs: 3, actions: true };
    await server.call("mutation", "work:plan", plan);
    await pause(random() * 400);
    await killAll([await writerOf(server.pid)]);
    await untilNothingIsOpen(server);
    const outcome = await server.call("query", "work:outcome", { round }) as Outcome;
    const label = `seed ${seed}, round ${round}`;
    checkMutations(outcome, label);
    assert.equal(checkActions(outcome, label), 0, `${label}: actions live in other processes`);
  }
  await server.call("mutation", "work:planStuck");
  const round = rounds;
  await server.call("mutation", "work:plan", { round, count: JOBS, inMs: 0, everyMs: 1, actions: false });
  await untilNothingIsOpen(server);
  const outcome = await server.call("query", "work:outcome", { round }) as Outcome;
  checkMutations(outcome, `seed ${seed}, behind a stuck one`);
  const stuck = outcome.jobs.find(({ name }) => name === "work:stuck");
  assert.match(stuck?.state.error ?? "", /took longer than 15 s/);
});
