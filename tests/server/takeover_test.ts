/**
 * A server takes over from another, with real processes: under load from callers that report each cut connection, and from
 * clients of the sync protocol. A long run has more load, and kills and freezes the old process.
 */
import assert from "node:assert/strict";
import { SynclineClient } from "../../mod/client/mod.ts";
import { connectLocal, readLines, writeLine } from "../../mod/kit/local_socket.ts";
import { DataLock } from "../../mod/server/data/data_lock.ts";
import { Child } from "../support/processes/child.ts";
import { isLongRun, repeats } from "../support/long_runs.ts";
import { freePort } from "../support/ports.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { pause, until } from "../support/waiting.ts";
import { random } from "../durability/support/rounds.ts";
import { RawHttp } from "./support/raw_http.ts";

const SOCKETS = isLongRun ? 1_000 : 40;
const CALLERS = isLongRun ? 8 : 4;
const PAUSE_MS = isLongRun ? 2 : 4;
/** Takeovers with a process that is killed or frozen at a random moment. */
const DISTURBANCES = repeats(3, 30);
const FROZEN_MS = 2_000;
/** Answers to each caller after which a process is certainly not handing over. */
const ANSWERS = 10;

const schema = (more: string, indexes = "") => `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({
  notes: defineTable({ by: z.string(), n: z.number(), ${more} }).index("by_by", ["by"])${indexes},
});
`;
const functions = (version: number) => `
import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const version = untypedQuery({ args: {}, handler: () => ${version} });
export const of = untypedQuery({
  args: { by: z.string() },
  handler: async (ctx, { by }) => {
    const notes = await ctx.db.query("notes").withIndex("by_by", (q) => q.eq("by", by)).collect();
    return notes.map((note) => note.n);
  },
});
export const add = untypedMutation({
  args: { by: z.string(), n: z.number() },
  handler: (ctx, { by, n }) => ctx.db.insert("notes", { by, n }),
});
export const slowly = untypedAction({
  args: { by: z.string(), ms: z.number() },
  handler: async (ctx, { by, ms }) => {
    await ctx.runMutation("notes:add", { by, n: 1 });
    await new Promise((resolve) => setTimeout(resolve, ms));
    await ctx.runMutation("notes:add", { by, n: 2 });
    return await ctx.runQuery("notes:of", { by });
  },
});
`;

/** A caller in a loop, with the numbers of its acknowledged calls and the reasons of failures. */
interface Caller {
  readonly by: string;
  readonly acknowledged: number[];
  readonly failures: string[];
  stop(): Promise<void>;
}

function callInLoop(by: string, call: (n: number) => Promise<string | null>): Caller {
  const acknowledged: number[] = [];
  const failures: string[] = [];
  let stopped = false;
  const loop = async () => {
    for (let n = 0; !stopped; n++) {
      const failure = await call(n).catch((error) => String(error));
      if (failure === null) acknowledged.push(n);
      else failures.push(failure);
      await pause(PAUSE_MS);
    }
  };
  const ended = loop();
  return {
    by,
    acknowledged,
    failures,
    async stop() {
      stopped = true;
      await ended;
    },
  };
}

function httpCaller(
  port: number,
  { by, keepAlive }: { readonly by: string; readonly keepAlive: boolean },
): Caller {
  const http = new RawHttp({ port, keepAlive });
  const caller = callInLoop(by, async (n) => {
    const { status, body } = await http.post("/api/mutation", { path: "notes:add", args: { by, n } });
    return status === 200 && body.includes('"success"') ? null : `${status} ${body}`;
  });
  return {
    ...caller,
    async stop() {
      await caller.stop();
      http[Symbol.dispose]();
    },
  };
}

function socketCaller(client: SynclineClient, by: string): Caller {
  return callInLoop(by, async (n) => {
    await client.mutation("notes:add", { by, n });
    return null;
  });
}

/** Checks that each acknowledged write exists, and none exists twice. */
async function checkWrites(url: string, { by, acknowledged }: Caller): Promise<void> {
  const found = await call<number[]>(url, { kind: "query", path: "notes:of", args: { by } });
  assert.equal(new Set(found).size, found.length, `${by}: a write exists twice`);
  const missing = acknowledged.filter((n) => !found.includes(n));
  assert.deepEqual(missing, [], `${by}: acknowledged writes are missing`);
}

async function call<Value>(
  url: string,
  { kind, path, args = {} }: { readonly kind: string; readonly path: string; readonly args?: object },
): Promise<Value> {
  const response = await fetch(`${url}/api/${kind}`, {
    method: "POST",
    body: JSON.stringify({ path, args }),
  });
  const answer = await response.json();
  assert.equal(answer.status, "success", JSON.stringify(answer));
  return answer.value;
}

function serve(folder: TempFolder, ...flags: string[]): Child {
  const data = ["--data", folder.at("data"), "--host", "127.0.0.1"];
  return new Child({ args: [..."run --quiet --no-prompt -P=serve main.ts".split(" "), ...data, ...flags] });
}

async function urlOf(child: Child): Promise<string> {
  const [url] = await child.line(/http:\/\/127\.0\.0\.1:\d+/);
  return url;
}

/** Sends messages of a new process. */
async function ask(folder: TempFolder, ...messages: object[]) {
  const connection = await connectLocal(folder.at("data"), "takeover.sock");
  const lines = readLines(connection, 10_000);
  const answers: { readonly type: string }[] = [];
  for (const message of messages) {
    await writeLine(connection, message);
    const { value } = await lines.next();
    answers.push(JSON.parse(String(value)));
  }
  return { connection, answers };
}

function report(text: string): void {
  if (isLongRun) Deno.stderr.writeSync(new TextEncoder().encode(`${text}\n`));
}

const ASK = { type: "ask", protocol: 4, pid: 4_242 };

/** A call may fail with a cut or refused connection, or with a request to try again. */
const MAY_FAIL =
  /^503|The connection ended|ECONNRESET|ECONNREFUSED|Connection re(?:set|fused)|closed|hang up|os error (?:104|111|32)/i;

/** Checks the failures of HTTP calls and returns their number. */
function checkFailures({ by, failures }: Caller): number {
  for (const failure of failures) assert.match(failure, MAY_FAIL, by);
  return failures.length;
}

Deno.test("[TO1] [TO2] a running server is taken over, or continues", async (t) => {
  await using folder = await TempFolder.with({
    "one/schema.ts": schema(""),
    "one/notes.ts": functions(1),
    "two/schema.ts": schema("more: z.string().optional()", '.index("by_n", ["n"])'),
    "two/notes.ts": functions(2),
    "wrong/schema.ts": schema("missing: z.string()"),
    "wrong/notes.ts": functions(3),
  });
  // No server runs yet: an ordinary start.
  const replicated = ["--replicate-to", folder.at("replica"), "--functions"];
  await using first = serve(folder, "--port", "0", "--takeover", ...replicated, folder.at("one"));
  const url = await urlOf(first);
  const port = Number(new URL(url).port);
  await call(url, { kind: "mutation", path: "notes:add", args: { by: "first", n: 1 } });

  await t.step("[TO3] only the owner can open the socket", async () => {
    assert.equal(((await Deno.stat(folder.at("data", "takeover.sock"))).mode ?? 0) & 0o777, 0o600);
  });

  await t.step(
    "[TO4] code that does not match the data is found before the old server steps down",
    async () => {
      const callers = [true, false].map((keepAlive) =>
        httpCaller(port, { by: `wrong ${keepAlive}`, keepAlive })
      );
      const client = new SynclineClient(url, { webSocket: WebSocket });
      await until(() => client.connectionState().isConnected);
      const failed = serve(folder, "--takeover", "--functions", folder.at("wrong"));
      assert.equal((await failed.exited).code, 1);
      await failed[Symbol.asyncDispose]();
      assert.match(
        failed.lastOutput,
        /ERROR The app in ".*wrong" cannot be served: \d+ documents of the table "notes" do not match/,
      );
      for (const caller of callers) {
        await caller.stop();
        assert.deepEqual(caller.failures, []);
        await checkWrites(url, caller);
      }
      assert.equal(client.connectionState().connectionCount, 0);
      client.close();
      assert.equal(await call(url, { kind: "query", path: "notes:version" }), 1);
    },
  );

  await t.step("[TO4] a port in use is found before the old server steps down", async () => {
    using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const caller = httpCaller(port, { by: "port", keepAlive: true });
    const flags = ["--takeover", "--port", String(taken.addr.port), ...replicated, folder.at("two")];
    const failed = serve(folder, ...flags);
    assert.equal((await failed.exited).code, 1);
    await failed[Symbol.asyncDispose]();
    assert.match(failed.lastOutput, /ERROR Port \d+ of 127\.0\.0\.1 is in use/);
    await caller.stop();
    assert.deepEqual(caller.failures, []);
    await checkWrites(url, caller);
  });

  await t.step("[TO4] the old server continues when the new one is lost", async () => {
    const { connection, answers } = await ask(folder, ASK, { type: "stepDown" });
    assert.deepEqual(answers.map(({ type }) => type), ["here", "released"]);
    connection.close();
    const again = () => call(url, { kind: "mutation", path: "notes:add", args: { by: "again", n: 1 } });
    await until(() => again().then(() => true, () => false));
    assert.deepEqual(await call(url, { kind: "query", path: "notes:of", args: { by: "again" } }), [1]);
    await until(() => Deno.stat(folder.at("data", "takeover.sock")).then(() => true, () => false));
  });

  await t.step("[TO5] the second of two simultaneous takeovers is refused", async () => {
    const { connection } = await ask(folder, ASK);
    const second = serve(folder, "--takeover", "--functions", folder.at("two"));
    assert.equal((await second.exited).code, 1);
    await second[Symbol.asyncDispose]();
    assert.match(second.lastOutput, /ERROR Another server \(process 4242\) is taking over already/);
    connection.close();
    const { connection: later, answers } = await ask(folder, { ...ASK, protocol: 2 });
    assert.match(JSON.stringify(answers), /incompatible version/);
    later.close();
  });

  await using second = new AsyncDisposableStack();
  let ended: Promise<Deno.CommandStatus> | null = null;
  await t.step("[TO6] another version with another schema takes over under load", async () => {
    const codes: number[] = [];
    const watching = new WebSocket(`${url.replace("http", "ws")}/api/sync`);
    watching.addEventListener("close", ({ code }) => codes.push(code));
    const clients = Array.from({ length: SOCKETS }, () => new SynclineClient(url));
    const versions = clients.map(() => 0);
    clients.forEach((client, i) =>
      client.subscribe("notes:version", {}, (value) => versions[i] = Number(value))
    );
    await until(() => versions.every((version) => version === 1));
    const http = Array.from(
      { length: CALLERS },
      (_, i) => httpCaller(port, { by: `http ${i}`, keepAlive: i % 2 === 0 }),
    );
    const sockets = clients.slice(0, CALLERS).map((client, i) => socketCaller(client, `socket ${i}`));
    const callers = [...http, ...sockets];
    await until(() => callers.every(({ acknowledged }) => acknowledged.length > 0));
    // The old server finishes it before it steps down.
    const slow = call<number[]>(url, { kind: "action", path: "notes:slowly", args: { by: "slow", ms: 100 } });
    const newServer = second.use(serve(folder, "--takeover", "--functions", folder.at("two")));
    const startedAt = performance.now();
    await until(() => codes.length > 0);
    const closedAt = performance.now();
    await until(() => versions.every((version) => version === 2));
    const backMs = Math.round(performance.now() - closedAt);
    report(`sockets closed after ${Math.round(closedAt - startedAt)} ms, all back ${backMs} ms later`);
    assert.equal((await first.exited).code, 0);
    const before = callers.map(({ acknowledged }) => acknowledged.length);
    await until(() => callers.every(({ acknowledged }, i) => acknowledged.length > (before[i] ?? 0)));
    assert.deepEqual(await slow, [1, 2]);
    await pause(isLongRun ? 10_000 : 0);
    for (const caller of callers) {
      await caller.stop();
      await checkWrites(url, caller);
    }
    for (const caller of sockets) assert.deepEqual(caller.failures, [], caller.by);
    const failed = http.reduce((sum, caller) => sum + checkFailures(caller), 0);
    const calls = http.reduce((sum, { acknowledged }) => sum + acknowledged.length, failed);
    report(`${failed} of ${calls} HTTP calls failed: ${http.flatMap(({ failures }) => failures)}`);
    // The change of port affects each caller at most once.
    assert.ok(
      failed <= CALLERS,
      `${failed} of ${calls} HTTP calls failed: ${http.flatMap(({ failures }) => failures)}`,
    );
    if (isLongRun) {
      assert.ok(failed <= calls * 0.005, `${failed} of ${calls} HTTP calls failed`);
      assert.ok(backMs <= 2_000, `sockets were back after ${backMs} ms`);
    }
    assert.deepEqual(codes, [1012]);
    for (const client of clients) client.close();
    assert.equal(await Deno.readTextFile(folder.at("data", "lock")), `${newServer.pid} serve\n`);
    ended = newServer.exited;
  });

  await t.step("[TO1] after a takeover, an ordinary start finds the port in use", async () => {
    await using elsewhere = new TempFolder();
    const samePort = serve(elsewhere, "--port", String(port), "--functions", folder.at("one"));
    assert.equal((await samePort.exited).code, 1);
    await samePort[Symbol.asyncDispose]();
    assert.match(samePort.lastOutput, /Port \d+ of 127\.0\.0\.1 is in use/);
  });

  await t.step("[TO1] a server that took over can be taken over", async () => {
    await using third = serve(folder, "--takeover", ...replicated, folder.at("one"));
    assert.equal(await urlOf(third), url);
    assert.equal((await ended)?.code, 0);
    // The first server claimed it twice, because it continued once.
    assert.equal((await Array.fromAsync(Deno.readDir(folder.at("replica", "owners")))).length, 3);
    assert.equal(await call(url, { kind: "query", path: "notes:version" }), 1);
    Deno.kill(third.pid, "SIGTERM");
    assert.equal((await third.exited).code, 0);
  });
});

async function freeze({ pid }: Child, ms: number): Promise<void> {
  try {
    Deno.kill(pid, "SIGSTOP");
    await pause(ms);
    Deno.kill(pid, "SIGCONT");
  } catch (error) {
    // It has already handed over and ended.
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

Deno.test("[TO4] [TO6] no acknowledged write is lost when a process is killed or frozen at any moment of a takeover", async () => {
  await using folder = await TempFolder.with({ "one/schema.ts": schema(""), "one/notes.ts": functions(1) });
  const flags = ["--functions", folder.at("one")];
  let current = serve(folder, "--port", String(freePort()), ...flags);
  const url = await urlOf(current);
  const port = Number(new URL(url).port);
  const client = new SynclineClient(url);
  const callers = [httpCaller(port, { by: "http", keepAlive: true }), socketCaller(client, "socket")];
  for (let round = 0; round < DISTURBANCES; round++) {
    const next = serve(folder, "--takeover", "--port", String(port), ...flags);
    const kind = (["new killed", "old killed", "old frozen"] as const)[round % 3];
    // A start takes about a second and a half, and the takeover is almost finished.
    await pause(random() * 2_500);
    if (kind === "old frozen") {
      await freeze(current, FROZEN_MS);
      assert.equal((await current.exited).code, 0);
      await current[Symbol.asyncDispose]();
    } else await (kind === "new killed" ? next : current).kill();
    current = kind === "new killed" ? current : next;
    // The remaining process serves. It had not taken over, or had handed over already and ends, maybe after some answers. A
    // process that has just found the killed one ends as well.
    for (let restarts = 0;; restarts++) {
      let over = false;
      void current.exited.then(() => over = true);
      const before = callers.map(({ acknowledged }) => acknowledged.length);
      const isAnswering = () =>
        callers.every(({ acknowledged }, i) => acknowledged.length >= (before[i] ?? 0) + ANSWERS);
      await until(() => over || isAnswering());
      if (!over) break;
      assert(restarts === 0 && kind !== "old frozen", "the process that serves ended");
      if (kind === "new killed") assert.equal((await current.exited).code, 0);
      await current[Symbol.asyncDispose]();
      current = serve(folder, "--port", String(port), ...flags);
      await urlOf(current);
    }
  }
  for (const caller of callers) {
    await caller.stop();
    await checkWrites(url, caller);
  }
  client.close();
  await current[Symbol.asyncDispose]();
});

Deno.test("[TO5] an unreachable server is reported in one line", async () => {
  await using folder = await TempFolder.with({ "one/schema.ts": schema(""), "one/notes.ts": functions(1) });
  using _lock = await DataLock.acquire(folder.at("data"), { by: "serve" });
  await using started = serve(folder, "--port", "0", "--takeover", "--functions", folder.at("one"));
  assert.equal((await started.exited).code, 1);
  assert.match(started.lastOutput, /A takeover is not possible.* stop it first\b/);
});
