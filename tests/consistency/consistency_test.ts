/**
 * Clients append to lists and read them, over sockets and over HTTP, while servers are killed, frozen, replaced and cut off.
 * Afterwards a checker searches for anomalies in the results of the clients.
 *
 * `deno task test:long consistency` runs each setup for longer. Environment variables: `SYNCLINE_CONSISTENCY_SETUPS` names
 * setups (single, workers, cluster; separated by commas), `SYNCLINE_CONSISTENCY_SEED` sets the seed, and
 * `SYNCLINE_CONSISTENCY_MS` the duration.
 */
import assert from "node:assert/strict";
import { isLongRun, repeats } from "../support/long_runs.ts";
import { mulberry32 } from "../support/processes/random.ts";
import { needs, postgres } from "../support/services.ts";
import { found, pause, until } from "../support/waiting.ts";
import { check } from "./support/checker.ts";
import type { Lists } from "./support/history.ts";
import { HttpClient } from "./support/http_client.ts";
import { listsOf, Recorder } from "./support/recorder.ts";
import { ClusterSetup, LocalSetup, type Machine, type Setup } from "./support/setup.ts";
import { SocketClient } from "./support/socket_client.ts";

const SETUPS =
  (Deno.env.get("SYNCLINE_CONSISTENCY_SETUPS") ?? (isLongRun ? "single,workers,cluster" : "single"))
    .split(",");
const SEED = Number(Deno.env.get("SYNCLINE_CONSISTENCY_SEED") ?? Date.now() % 1_000_000);
const RUN_MS = Number(Deno.env.get("SYNCLINE_CONSISTENCY_MS") ?? repeats(2_500, 60_000));
const SOCKETS = repeats(3, 6);
const CALLERS = repeats(2, 4);
/** Longest time between faults. */
const CALM_MS_MAX = 2_500;
/** Operations of each kind before, between and after faults. */
const PROGRESS = 10;
/** Anomalies shown. */
const SHOWN_MAX = 5;

async function run(setup: Setup): Promise<void> {
  const random = mulberry32(SEED);
  const pick = (below: number) => Math.floor(random() * below);
  const recorder = new Recorder(mulberry32(SEED + 1));
  const { machines } = setup;
  const clients = [
    ...Array.from({ length: SOCKETS }, (_, at) => new SocketClient(recorder, machines, at)),
    ...Array.from({ length: CALLERS }, (_, at) => new HttpClient(recorder, machines, at)),
  ];
  const work = Promise.all(clients.map((client) => client.run()));
  const faults: string[] = [];
  try {
    // Each kind occurs once before any is repeated.
    let kinds: string[] = [];
    for (const endAt = performance.now() + RUN_MS; performance.now() < endAt;) {
      await progress(recorder);
      await pause(pick(CALM_MS_MAX));
      if (kinds.length === 0) kinds = [...setup.faults];
      const [fault = ""] = kinds.splice(pick(kinds.length), 1);
      faults.push(fault);
      await setup.inflict(fault, pick);
    }
    await progress(recorder);
  } finally {
    for (const client of clients) client.stop();
    await work;
  }
  const final = await finalLists(recorder.keys, machines);
  const { mutations, queries, views, problems, errors } = recorder;
  const anomalies = check({ mutations, queries, views, final });
  const count = (outcome: string) => mutations.filter((mutation) => mutation.outcome === outcome).length;
  const figures = [
    `seed ${SEED}: ${mutations.length} mutations (${count("committed")} committed, ${
      count("failed")
    } failed, ` +
    `${
      count("unknown")
    } unknown), ${queries.length} queries, ${views.length} views, ${recorder.keys.length} lists`,
    `${faults.length} faults: ${faults.join(" ")}`,
    `errors: ${[...errors].map(([reason, times]) => `${times} ${reason}`).join("; ")}`,
    `${anomalies.length} anomalies, ${problems.length} problems`,
  ].join("\n");
  if (isLongRun) Deno.stderr.writeSync(new TextEncoder().encode(`${figures}\n`));
  const findings = [...anomalies.map(({ name, text }) => `${name}: ${text}`), ...problems];
  if (findings.length > 0) {
    throw new Error(`${figures}\n${findings.slice(0, SHOWN_MAX).join("\n")}\n${setup.lastOutput()}`);
  }
}

/** Waits until clients have written, queried and received something more. */
async function progress({ mutations, queries, views }: Recorder): Promise<void> {
  const lists = [mutations, queries, views];
  const wanted = lists.map(({ length }) => length + PROGRESS);
  await until(() => lists.every(({ length }, at) => length >= (wanted[at] ?? 0)), {
    what: `clients are served (seed ${SEED})`,
  });
}

/** Reads all lists, which must become equal on all machines. */
async function finalLists(keys: readonly string[], machines: readonly Machine[]): Promise<Lists> {
  return await found(async () => {
    const results = await Promise.all(machines.map((machine) => readAll(machine, keys)));
    const [first, ...others] = results.map((result) => JSON.stringify(result));
    const isSame = results[0] !== undefined && others.every((other) => other === first);
    return isSame ? listsOf(keys, results[0] ?? []) : null;
  }, { what: `all machines have the same lists (seed ${SEED})` });
}

async function readAll({ port }: Machine, keys: readonly string[]): Promise<number[][]> {
  const response = await fetch(`http://127.0.0.1:${port}/api/query`, {
    method: "POST",
    headers: { connection: "close" },
    body: JSON.stringify({ path: "lists:read", args: { keys } }),
  });
  const answer = await response.json();
  assert.equal(answer.status, "success", JSON.stringify(answer));
  return answer.value;
}

function test(name: string, title: string, start: () => Promise<Setup>): void {
  const named = name === "cluster" ? needs(postgres, title) : { name: title, ignore: false };
  Deno.test({
    ...named,
    ignore: named.ignore || !SETUPS.includes(name),
    // Killed servers leave resources open.
    sanitizeOps: false,
    sanitizeResources: false,
    async fn() {
      await using setup = await start();
      await run(setup);
    },
  });
}

test(
  "single",
  "[SG1] [SG2] [SG7] [SG12] list histories of a server are consistent",
  () => LocalSetup.start(),
);
test(
  "workers",
  "[SG1] [SG12] [WK2] list histories of a server with three workers are consistent",
  () => LocalSetup.start(3),
);
test(
  "cluster",
  "[SG1] [SG12] [PG1] [PG5] list histories of three servers are consistent",
  () => ClusterSetup.start(),
);
