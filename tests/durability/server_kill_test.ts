/** `kill -9` of the whole server at random times: no acknowledged append is lost, halved or repeated. */
import assert from "node:assert/strict";
import { anyRunning, killAll, processTree } from "../support/processes/process_tree.ts";
import { ServerProcess } from "../support/processes/server_process.ts";
import { Appender } from "./support/appender.ts";
import { pause } from "../support/waiting.ts";
import { random, rounds, seed, startServer, until } from "./support/rounds.ts";
import { TempFolder } from "../support/temp_folder.ts";

const WRITERS = 64;
const LOAD_MS_MAX = 700;
/** Answered appends each writer sends again after a restart: the newest, and some of any age. */
const SENT_AGAIN = 3;

interface Entries {
  readonly lefts: number[];
  readonly rights: number[];
}

async function entriesOf(server: ServerProcess, appender: Appender, from: number): Promise<Entries> {
  return await server.call("query", "log:entries", { writer: appender.writer, from }) as Entries;
}

/** The state right after a start, before anything is sent again. */
async function checkAcknowledged(
  server: ServerProcess,
  appenders: Appender[],
  from: number[],
): Promise<void> {
  await Promise.all(appenders.map(async (appender) => {
    const start = from[appender.writer] ?? 0;
    const { lefts, rights } = await entriesOf(server, appender, start);
    assert.deepEqual(lefts, rights, `writer ${appender.writer} has a half applied append`);
    assert.equal(new Set(lefts).size, lefts.length, `writer ${appender.writer} has a repeated append`);
    const there = new Set(lefts);
    for (const sequence of appender.acknowledged.keys()) {
      if (sequence >= start) assert(there.has(sequence), `writer ${appender.writer}: ${sequence} is lost`);
    }
    for (const sequence of lefts) assert(sequence < appender.sent, `nobody sent ${sequence}`);
    // One socket's mutations run in the order sent, so what survived has no gaps.
    assert.deepEqual(lefts, lefts.map((_, i) => start + i), `writer ${appender.writer} has a gap`);
  }));
}

/** The state after everything was sent again: every number once. */
async function checkComplete(server: ServerProcess, appenders: Appender[], from: number[]): Promise<void> {
  await Promise.all(appenders.map(async (appender) => {
    const start = from[appender.writer] ?? 0;
    const { lefts, rights } = await entriesOf(server, appender, start);
    const expected = Array.from({ length: appender.sent - start }, (_, i) => start + i);
    assert.deepEqual(lefts, expected, `writer ${appender.writer}`);
    assert.deepEqual(rights, expected, `writer ${appender.writer}`);
    const { count } = await server.call("query", "log:newest", { writer: appender.writer }) as {
      count: number;
    };
    assert.equal(count, appender.sent, `writer ${appender.writer}`);
  }));
}

Deno.test("acknowledged mutations survive kill -9 of the server, completely and once, and are replayed from the record", async () => {
  await using dataFolder = new TempFolder();
  const dataDir = dataFolder.path;
  const appenders = Array.from({ length: WRITERS }, (_, writer) => new Appender(writer, { session: true }));
  const violations = () => appenders.flatMap((appender) => appender.violations);
  let checkedUpTo: number[] = [];
  let acknowledged = 0;
  /** Isolates of the server that was killed last. The next server starts while they may still be ending. */
  let orphans: number[] = [];
  try {
    // The last start only checks.
    for (let round = 0; round <= rounds; round++) {
      await using server = await startServer(dataDir);
      await checkAcknowledged(server, appenders, checkedUpTo);
      await Promise.all(appenders.map((appender) => appender.connect(server.port)));
      for (const appender of appenders) {
        const answered = [...appender.acknowledged.keys()];
        const again = new Set(appender.unanswered);
        for (let i = 0; i < SENT_AGAIN; i++) {
          const sequence = i === 0 ? answered.at(-1) : answered[Math.floor(random() * answered.length)];
          if (sequence !== undefined) again.add(sequence);
        }
        for (const sequence of again) appender.resend(sequence);
      }
      await until(() => appenders.every(({ awaited }) => awaited === 0), {
        what: "answers to repeated requests",
        server,
      });
      assert.deepEqual(violations(), [], `seed ${seed}, round ${round}`);
      // A busy machine may run them late.
      await until(async () => !await anyRunning(orphans), {
        what: "the end of the killed server's isolates",
        server,
        timeoutMs: 30_000,
      });
      await checkComplete(server, appenders, checkedUpTo);
      checkedUpTo = appenders.map(({ sent }) => sent);
      if (round < rounds) {
        for (const appender of appenders) appender.append();
        await pause(random() * LOAD_MS_MAX);
        orphans = (await processTree(server.pid)).slice(1);
        assert(orphans.length > 0, "the server has no isolates");
        // Every other time only main is killed, and the isolates detect it.
        if (round % 2 === 0) await killAll([server.pid, ...orphans]);
        await server.kill();
      }
      acknowledged = appenders.reduce((sum, appender) => sum + appender.acknowledged.size, 0);
      await Promise.all(appenders.map((appender) => appender.disconnect()));
    }
    assert(acknowledged > WRITERS * rounds, `only ${acknowledged} mutations were acknowledged`);
    assert.deepEqual(violations(), [], `seed ${seed}`);
  } finally {
    await Promise.all(appenders.map((appender) => appender.disconnect()));
  }
});
