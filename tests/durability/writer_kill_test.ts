/** `kill -9` of the writer alone at random moments: clients notice nothing but a pause. */
import assert from "node:assert/strict";
import { killAll, resume, suspend, writerOf } from "../support/processes/process_tree.ts";
import type { ServerProcess } from "../support/processes/server_process.ts";
import { Appender } from "./support/appender.ts";
import { NewestCommit } from "./support/newest_commit.ts";
import { pause } from "../support/waiting.ts";
import { random, rounds, seed, startServer, until } from "./support/rounds.ts";
import { SyncClient } from "./support/sync_client.ts";
import { TempFolder } from "../support/temp_folder.ts";

const WRITERS = 64;
const OBSERVERS = 4;
const BETWEEN_MS_MAX = 300;
/** Checks of the writer's position before it is killed at any position. */
const LOOKS_MAX = 40;
const BETWEEN_LOOKS_MS_MAX = 10;
/** Time for main to pass on all answers it received, while the writer is stopped. */
const SETTLE_MS = 40;

const pauseMs = () => 100 + random() * 300;

interface Newest {
  readonly count: number;
  readonly left: number;
  readonly right: number;
}

/**
 * Subscribes an appender to its own newest append and compares each result with the answers: at ts T the query shows exactly
 * the appends whose ts is at most T.
 */
function watchOwnAppends(appender: Appender): void {
  const { client } = appender;
  const queryId = client.subscribe("log:newest", { writer: appender.writer });
  let ahead: { readonly sequence: number; readonly ts: number }[] = [];
  appender.onChange = (answered) => {
    if (answered !== null) ahead.push(answered);
    const newest = client.results.get(queryId) as Newest | undefined;
    if (newest === undefined) return;
    const at = `writer ${appender.writer} at ts ${client.version.ts}`;
    if (newest.left !== newest.right || newest.count !== newest.left + 1) {
      appender.violations.push(`${at}: ${JSON.stringify(newest)} does not agree`);
    }
    for (const { sequence, ts } of ahead) {
      const shown = newest.count > sequence;
      if (shown !== ts <= client.version.ts) {
        appender.violations.push(`${at}: append ${sequence} of ts ${ts} is ${shown ? "" : "not "}shown`);
      }
    }
    ahead = ahead.filter(({ ts }) => ts > client.version.ts);
  };
}

/**
 * Kills the writer, if possible between a commit and its answers, so that the commit is in the database but not published.
 * Returns whether that was the case.
 */
async function killInTheMiddle(
  server: ServerProcess,
  options: { readonly newest: NewestCommit; readonly answeredTs: () => number },
): Promise<boolean> {
  const writer = await writerOf(server.pid);
  let between = false;
  for (let look = 0; look < LOOKS_MAX && !between; look++) {
    await pause(random() * BETWEEN_LOOKS_MS_MAX);
    await suspend(writer);
    await pause(SETTLE_MS);
    const ts = await options.newest.ts(SETTLE_MS);
    between = ts !== null && ts > options.answeredTs();
    if (!between) await resume(writer);
  }
  await killAll([writer]);
  return between;
}

/** A client that records the total at each ts. */
async function observe(port: number, seen: Map<number, number>[]): Promise<SyncClient> {
  const totals = new Map<number, number>();
  seen.push(totals);
  const client = await SyncClient.connect({
    port,
    session: null,
    onTransition: ({ version, results }) => totals.set(version.ts, Number(results.get(0))),
  });
  client.subscribe("log:total", {});
  return client;
}

Deno.test("kill -9 of the writer loses no call, repeats none, hides no commit and closes no socket", async () => {
  await using dataFolder = new TempFolder();
  const dataDir = dataFolder.path;
  const appenders = Array.from({ length: WRITERS }, (_, writer) => {
    const session = writer % 2 === 0;
    // A result that arrives late is detected even if the answer to the client's next append arrives later still.
    return new Appender(writer, writer % 4 < 2 ? { session, pauseMs } : { session });
  });
  const observers: SyncClient[] = [];
  let between = 0;
  const seen: Map<number, number>[] = [];
  const problems = () => [...appenders, ...observers].flatMap(({ violations }) => violations);
  const answeredTs = () => Math.max(...appenders.map(({ newestTs }) => newestTs));
  const answered = () => appenders.reduce((sum, appender) => sum + appender.acknowledged.size, 0);
  try {
    await using server = await startServer(dataDir);
    using newest = new NewestCommit(dataDir);
    for (const appender of appenders) {
      await appender.connect(server.port);
      watchOwnAppends(appender);
    }
    for (let i = 0; i < OBSERVERS; i++) observers.push(await observe(server.port, seen));
    for (const appender of appenders) appender.append();
    for (let round = 0; round < rounds; round++) {
      await pause(random() * BETWEEN_MS_MAX);
      if (round % 2 === 0) await killAll([await writerOf(server.pid)]);
      else if (await killInTheMiddle(server, { newest, answeredTs })) between++;
      const before = answered();
      await until(() => answered() > before + WRITERS * 3, {
        what: `answers after the writer was killed in round ${round}`,
        server,
      });
      assert.deepEqual(problems(), [], `seed ${seed}, round ${round}`);
    }
    assert(between > 0 || rounds < 10, "the writer was never met between a commit and its answers");
    for (const appender of appenders) appender.rest();
    await until(() => appenders.every(({ awaited, client }) => awaited === 0 && client.settled), {
      what: "the last answers and their effects",
      server,
    });
    await until(() => observers.every(({ results }) => results.get(0) === answered()), {
      what: "the last total at every observer",
      server,
    });
    assert.deepEqual(problems(), [], `seed ${seed}`);
    assert.deepEqual(appenders.map(({ closes }) => closes), appenders.map(() => 0), "a socket was closed");

    const commits = appenders.flatMap(({ acknowledged }) => [...acknowledged.values()].map(({ ts }) => ts))
      .sort((a, b) => a - b);
    assert.equal(new Set(commits).size, commits.length, "two mutations had the same ts");
    for (const totals of seen) {
      let committed = 0;
      for (const [ts, total] of [...totals].sort(([a], [b]) => a - b)) {
        while ((commits[committed] ?? Infinity) <= ts) committed++;
        assert.equal(total, committed, `at ts ${ts}`);
      }
    }
    for (const appender of appenders) {
      const { lefts, rights } = await server.call("query", "log:entries", {
        writer: appender.writer,
        from: 0,
      }) as {
        lefts: number[];
        rights: number[];
      };
      const expected = Array.from({ length: appender.sent }, (_, i) => i);
      assert.deepEqual(lefts, expected);
      assert.deepEqual(rights, expected);
    }
  } finally {
    await Promise.all([
      ...appenders.map((appender) => appender.disconnect()),
      ...observers.map((observer) => observer[Symbol.asyncDispose]()),
    ]);
  }
});
