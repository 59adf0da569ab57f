/** Two queries with one invariant and concurrent writers: no Transition may contain them at different times. */
import assert from "node:assert/strict";
import { random, rounds, seed, startServer, until } from "./support/rounds.ts";
import { SyncClient } from "./support/sync_client.ts";
import { TempFolder } from "../support/temp_folder.ts";

const SUM = 1_000_000;
const WRITERS = 8;
const READERS = 16;
/** Readers that are also subscribed to a slow query over both amounts, which makes the server use several reader isolates. */
const SLOW_READERS = 2;
const TRANSITIONS_PER_ROUND = 2000;
const TRANSITIONS_PER_ROUND_SLOW = 100;
/** After one Transition in this many, a reader removes one of its queries and adds it again. */
const RESUBSCRIBE_ONE_IN = 50;
const TRANSITIONS_MS = 600_000;

interface Reader {
  readonly client: SyncClient;
  /** Number of Transitions after which both amounts were present and compared. */
  readonly compared: () => number;
}

/** A client that subscribes to both amounts and compares them after each Transition. */
async function compare(
  port: number,
  options: { readonly slow: boolean; readonly onDifference: (text: string) => void },
): Promise<Reader> {
  const queries = { a: -1, b: -1, slow: -1 };
  let count = 0;
  const client = await SyncClient.connect({
    port,
    session: null,
    onTransition: (client) => {
      const a = client.results.get(queries.a);
      const b = client.results.get(queries.b);
      if (a === undefined || b === undefined) return;
      count++;
      if (Number(a) + Number(b) !== SUM) options.onDifference(`${a} + ${b} at ts ${client.version.ts}`);
      const both = client.results.get(queries.slow) as { readonly a: number; readonly b: number } | undefined;
      if (both !== undefined && (both.a !== a || both.b !== b)) {
        options.onDifference(`${JSON.stringify(both)} is not ${a} and ${b} at ts ${client.version.ts}`);
      }
      if (random() * RESUBSCRIBE_ONE_IN > 1) return;
      const name = random() < 0.5 ? "a" : "b";
      client.unsubscribe(queries[name]);
      queries[name] = client.subscribe("amounts:get", { name });
    },
  });
  queries.a = client.subscribe("amounts:get", { name: "a" });
  queries.b = client.subscribe("amounts:get", { name: "b" });
  if (options.slow) queries.slow = client.subscribe("amounts:slowly", {});
  return { client, compared: () => count };
}

/** A client that moves amounts one after another while `shouldContinue` returns true. */
async function move(port: number, shouldContinue: () => boolean): Promise<SyncClient> {
  let requestId = 0;
  const next = () => {
    const by = Math.floor(random() * 200) - 100;
    client.mutate(requestId++, "amounts:move", { by });
  };
  const client: SyncClient = await SyncClient.connect({
    port,
    session: null,
    onResponse: (response) => {
      if (!response.success) client.violations.push(response.errorMessage);
      else if (shouldContinue()) next();
    },
  });
  next();
  return client;
}

/** Runs writers and readers until this many Transitions were compared. */
async function compareTransitions(wanted: number, options: { readonly slowReaders: number }): Promise<void> {
  await using dataFolder = new TempFolder();
  const readers: Reader[] = [];
  const writers: SyncClient[] = [];
  const differences: string[] = [];
  const compared = () => readers.reduce((sum, reader) => sum + reader.compared(), 0);
  const problems = () => [
    ...differences.slice(0, 5),
    ...[...writers, ...readers.map(({ client }) => client)].flatMap(({ violations }) => violations),
  ];
  try {
    await using server = await startServer(dataFolder.path);
    await server.call("mutation", "amounts:create", { sum: SUM });
    for (let i = 0; i < READERS; i++) {
      const onDifference = (difference: string) => differences.push(difference);
      readers.push(await compare(server.port, { slow: i < options.slowReaders, onDifference }));
    }
    const shouldContinue = () => compared() < wanted && problems().length === 0;
    for (let i = 0; i < WRITERS; i++) writers.push(await move(server.port, shouldContinue));
    await until(() => !shouldContinue(), {
      what: `${wanted} Transitions`,
      timeoutMs: TRANSITIONS_MS,
      server,
    });
    assert.deepEqual(problems(), [], `seed ${seed}`);
    await Promise.all(
      [...writers, ...readers.map(({ client }) => client)].map((client) => client[Symbol.asyncDispose]()),
    );
  } finally {
    for (const client of [...writers, ...readers.map(({ client }) => client)]) client.cut();
  }
}

Deno.test("two queries over a + b never differ in a Transition under concurrent writers", async () => {
  await compareTransitions(rounds * TRANSITIONS_PER_ROUND, { slowReaders: 0 });
});

Deno.test("two queries over a + b never differ in a Transition while a slow query over both runs", async () => {
  await compareTransitions(rounds * TRANSITIONS_PER_ROUND_SLOW, { slowReaders: SLOW_READERS });
});
