/**
 * The client against the real server over a connection with all kinds of faults: each mutation is applied exactly once and in
 * order, each promise ends as the mutation did, each subscription ends equal to a fresh query.
 */
import assert from "node:assert/strict";
import { FunctionError, SynclineClient, SynclineHttpClient } from "../../mod/client/mod.ts";
import type { Clock } from "../../mod/client/mod.ts";
import { ServerProcess } from "../support/processes/server_process.ts";
import { FaultProxy, FAULTS } from "./support/fault_proxy.ts";
import { isLongRun } from "../support/long_runs.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { until } from "../support/waiting.ts";

const size = isLongRun ? { mutations: 10_000, faults: 500 } : { mutations: 1000, faults: 50 };
const CLIENTS = 4;
/** Mutations in flight per client. */
const WINDOW = 10;
/** How much faster the clients' time runs: 30 s of silence are one second. */
const SPEED = 30;

const fastClock: Clock = {
  now: () => performance.now() * SPEED,
  setTimeout: (callback, delayMs) => setTimeout(callback, delayMs / SPEED),
  clearTimeout: (timer) => clearTimeout(timer as number),
};

class Writer {
  readonly author: string;
  readonly client: SynclineClient;
  readonly #total: number;
  /** Numbers whose promise resolved, in that order. */
  readonly resolved: number[] = [];
  readonly refused: number[] = [];
  /** Newest results of the subscriptions. */
  numbers: readonly number[] = [];
  newest: unknown = null;
  /** Writes that were not visible when their promise resolved. */
  readonly unseen: number[] = [];

  constructor(author: string, { port, total }: { port: number; total: number }) {
    this.author = author;
    this.#total = total;
    // In this client's time a machine that is busy for a moment looks like a network that blocks sockets.
    this.client = new SynclineClient(`http://127.0.0.1:${port}`, { clock: fastClock, polling: false });
    this.client.subscribe("entries:numbers", { author }, (numbers) => this.numbers = numbers as number[]);
    this.client.subscribe("entries:newest", { count: 20 }, (entries) => this.newest = entries);
  }

  /** Writes all numbers, a few at a time, and calls `onDone` after each. */
  async write(onDone: () => void): Promise<void> {
    let next = 0;
    const lane = async () => {
      while (next < this.#total) {
        await this.#writeOne(next++);
        onDone();
      }
    };
    await Promise.all(Array.from({ length: WINDOW }, lane));
  }

  async #writeOne(n: number): Promise<void> {
    try {
      const result = await this.client.mutation("entries:append", { author: this.author, n });
      assert.equal(result, n);
      this.resolved.push(n);
      if (!this.numbers.includes(n)) this.unseen.push(n);
    } catch (error) {
      if (!(error instanceof FunctionError) || error.code !== "refused") throw error;
      assert.equal(error.data, n);
      this.refused.push(n);
    }
  }
}

Deno.test("CL9 over failing connections each mutation is applied once, in order, and becomes visible", async () => {
  await using dataFolder = new TempFolder();
  const dataDir = dataFolder.path;
  const struck = new Map<string, number>();
  const startedAt = performance.now();
  await using server = await ServerProcess.start({ dataDir, functions: "tests/client/functions" });
  await using proxy = new FaultProxy(server.port);
  const total = size.mutations / CLIENTS;
  const writers = Array.from(
    { length: CLIENTS },
    (_, i) => new Writer(`writer ${i}`, { port: proxy.port, total }),
  );
  let done = 0;
  let strikes = 0;
  const onDone = () => {
    done++;
    // Spread over the run. If no connection is healthy, the next fault makes up for it.
    while (strikes < size.faults * (done / size.mutations)) {
      const fault = FAULTS[Math.floor(Math.random() * FAULTS.length)] ?? "cut";
      if (!proxy.strike(fault, Math.random())) break;
      strikes++;
      struck.set(fault, (struck.get(fault) ?? 0) + 1);
    }
  };
  await Promise.all(writers.map((writer) => writer.write(onDone)));

  const direct = new SynclineHttpClient(`http://127.0.0.1:${server.port}`);
  const expected = Array.from({ length: total }, (_, n) => n).filter((n) => n % 50 !== 49);
  for (const { author, resolved, refused, unseen } of writers) {
    assert.deepEqual(await direct.query("entries:numbers", { author }), expected, `writes of ${author}`);
    assert.deepEqual(resolved.toSorted((a, b) => a - b), expected, `answers to ${author}`);
    assert.equal(refused.length, total - expected.length);
    assert.deepEqual(unseen, [], `writes that ${author} could not see yet`);
  }
  const newest = JSON.stringify(await direct.query("entries:newest", { count: 20 }));
  for (const writer of writers) {
    await until(
      () => writer.numbers.length === expected.length,
      { what: `the subscription of ${writer.author}` },
    );
    assert.deepEqual(writer.numbers, expected);
    await until(
      () => JSON.stringify(writer.newest) === newest,
      { what: `the newest entries of ${writer.author}` },
    );
  }
  const reconnections = writers.map(({ client }) => client.connectionState().connectionCount);
  for (const { client } of writers) client.close();
  assert(strikes >= size.faults * 0.9, `only ${strikes} faults`);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const kinds = [...struck].map(([fault, count]) => `${count} ${fault}`).join(", ");
  // deno-lint-ignore no-console
  console.log(
    `${size.mutations} mutations, ${strikes} faults (${kinds}), ${reconnections} reconnections, ${seconds} s`,
  );
});
