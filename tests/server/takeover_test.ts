/**
 * A server takes over from another, with real processes: under load from callers that see each cut connection, and from
 * clients of the sync protocol. In a long run the load is as large as the machine can make it.
 */
import assert from "node:assert/strict";
import { SynclineClient } from "../../mod/client/mod.ts";
import { connectLocal, readLines, writeLine } from "../../mod/kit/local_socket.ts";
import { DataLock } from "../../mod/server/data/data_lock.ts";
import { Child } from "../support/processes/child.ts";
import { isLongRun } from "../support/long_runs.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { pause, until } from "../support/waiting.ts";
import { RawHttp } from "./support/raw_http.ts";

const SOCKETS = isLongRun ? 1_000 : 40;
const CALLERS = isLongRun ? 8 : 4;
const PAUSE_MS = isLongRun ? 0 : 4;
const START_MS = 60_000;

const schema = (more: string, indexes = "") => `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({
  notes: defineTable({ by: z.string(), n: z.number(), ${more} }).index("by_by", ["by"])${indexes},
});
`;
const functions = (version: number) => `
import { action, mutation, query } from "syncline/server";
import { z } from "zod";
export const version = query({ args: {}, handler: () => ${version} });
export const of = query({
  args: { by: z.string() },
  handler: async (ctx, { by }) => {
    const notes = await ctx.db.query("notes").withIndex("by_by", (q) => q.eq("by", by)).collect();
    return notes.map((note) => note.n);
  },
});
export const add = mutation({
  args: { by: z.string(), n: z.number() },
  handler: (ctx, { by, n }) => ctx.db.insert("notes", { by, n }),
});
export const slowly = action({
  args: { by: z.string(), ms: z.number() },
  handler: async (ctx, { by, ms }) => {
    await ctx.runMutation("notes:add", { by, n: 1 });
    await new Promise((resolve) => setTimeout(resolve, ms));
    await ctx.runMutation("notes:add", { by, n: 2 });
    return await ctx.runQuery("notes:of", { by });
  },
});
`;

/** A caller in a loop: it knows what was acknowledged, and what failed. */
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

/** The acknowledged ones are there once each, and nothing is there twice. */
async function checkWrites(url: string, { by, acknowledged }: Caller): Promise<void> {
  const found = await call<number[]>(url, { kind: "query", path: "notes:of", args: { by } });
  assert.equal(new Set(found).size, found.length, `${by} has some twice`);
  const missing = acknowledged.filter((n) => !found.includes(n));
  assert.deepEqual(missing, [], `${by} lost some`);
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
  const [url] = await child.line(/http:\/\/127\.0\.0\.1:\d+/, START_MS);
  return url;
}

/** Speaks to a server as one that takes over would. */
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

function tell(text: string): void {
  if (isLongRun) Deno.stderr.writeSync(new TextEncoder().encode(`${text}\n`));
}

const ASK = { type: "ask", protocol: 2, pid: 4_242 };

Deno.test("[TO1] [TO2] a running server is taken over, or goes on", async (t) => {
  await using folder = await TempFolder.with({
    "one/schema.ts": schema(""),
    "one/notes.ts": functions(1),
    "two/schema.ts": schema("more: z.string().optional()", '.index("by_n", ["n"])'),
    "two/notes.ts": functions(2),
    "wrong/schema.ts": schema("missing: z.string()"),
    "wrong/notes.ts": functions(3),
  });
  // Nobody is there: an ordinary start.
  const replicated = ["--replicate-to", folder.at("replica"), "--functions"];
  await using first = serve(folder, "--port", "0", "--takeover", ...replicated, folder.at("one"));
  const url = await urlOf(first);
  const port = Number(new URL(url).port);
  await call(url, { kind: "mutation", path: "notes:add", args: { by: "first", n: 1 } });

  await t.step("[TO3] the socket that is asked is its owner's alone", async () => {
    assert.equal(((await Deno.stat(folder.at("data", "takeover.sock"))).mode ?? 0) & 0o777, 0o600);
  });

  await t.step("[TO4] a code that does not fit the data takes nothing over, and no call fails", async () => {
    const callers = [true, false].map((keepAlive) =>
      httpCaller(port, { by: `wrong ${keepAlive}`, keepAlive })
    );
    const client = new SynclineClient(url);
    await until(() => client.connectionState().isConnected);
    const failed = serve(folder, "--takeover", "--functions", folder.at("wrong"));
    assert.equal((await failed.exited).code, 1);
    await failed[Symbol.asyncDispose]();
    assert.match(failed.lastOutput, /ERROR The app in ".*wrong" cannot be served/);
    for (const caller of callers) {
      await caller.stop();
      assert.deepEqual(caller.failures, []);
      await checkWrites(url, caller);
    }
    assert.equal(client.connectionState().connectionCount, 0);
    client.close();
    assert.equal(await call(url, { kind: "query", path: "notes:version" }), 1);
  });

  await t.step(
    "[TO4] one that fails at its last step leaves everything as it was, the replica included",
    async () => {
      const claims = async () => (await Array.fromAsync(Deno.readDir(folder.at("replica", "owners")))).length;
      await until(async () => await claims() === 1);
      using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
      const caller = httpCaller(port, { by: "last step", keepAlive: true });
      const failed = serve(
        folder,
        ...["--takeover", "--port", String(taken.addr.port), ...replicated, folder.at("two")],
      );
      assert.equal((await failed.exited).code, 1);
      await failed[Symbol.asyncDispose]();
      assert.match(failed.lastOutput, /ERROR Port \d+ of 127\.0\.0\.1 is in use/);
      const before = caller.acknowledged.length;
      await until(() => caller.acknowledged.length > before);
      await caller.stop();
      assert.deepEqual(caller.failures, []);
      await checkWrites(url, caller);
      assert.equal(await call(url, { kind: "query", path: "notes:version" }), 1);
      // The one that failed has claimed nothing, so that the first ships on.
      assert.equal(await claims(), 1);
    },
  );

  await t.step(
    "[TO4] calls wait during the switch, and are answered when the other server dies in it",
    async () => {
      const { connection, answers } = await ask(folder, ASK, { type: "letGo" });
      assert.deepEqual(answers.map(({ type }) => type), ["here", "gone"]);
      let answered = false;
      const held = call(url, { kind: "mutation", path: "notes:add", args: { by: "held", n: 1 } });
      held.then(() => answered = true, () => {});
      // Health is told meanwhile.
      assert.equal((await (await fetch(`${url}/api/health`)).json()).status, "ok");
      assert.equal(answered, false);
      connection.close();
      await held;
      assert.deepEqual(await call(url, { kind: "query", path: "notes:of", args: { by: "held" } }), [1]);
    },
  );

  await t.step("[TO5] of two that take over at once one is told so in a line", async () => {
    const { connection } = await ask(folder, ASK);
    const second = serve(folder, "--takeover", "--functions", folder.at("two"));
    assert.equal((await second.exited).code, 1);
    await second[Symbol.asyncDispose]();
    assert.match(second.lastOutput, /ERROR Another server \(process 4242\) is taking over already$/);
    connection.close();
    const { connection: later, answers } = await ask(folder, { ...ASK, protocol: 3 });
    assert.match(JSON.stringify(answers), /incompatible version/);
    later.close();
  });

  await using second = new AsyncDisposableStack();
  let ended: Promise<Deno.CommandStatus> | null = null;
  await t.step(
    "[TO6] another version with another schema takes over under load: no call fails, no write is lost",
    async () => {
      const codes: number[] = [];
      const watching = new WebSocket(`${url.replace("http", "ws")}/api/sync`);
      watching.addEventListener("close", ({ code }) => codes.push(code));
      const clients = Array.from({ length: SOCKETS }, () => new SynclineClient(url));
      const versions = clients.map(() => 0);
      clients.forEach((client, i) =>
        client.subscribe("notes:version", {}, (value) => versions[i] = Number(value))
      );
      await until(() => versions.every((version) => version === 1));
      const callers = [
        ...Array.from(
          { length: CALLERS },
          (_, i) => httpCaller(port, { by: `http ${i}`, keepAlive: i % 2 === 0 }),
        ),
        ...clients.slice(0, CALLERS).map((client, i) => socketCaller(client, `socket ${i}`)),
      ];
      await until(() => callers.every(({ acknowledged }) => acknowledged.length > 0));
      // It runs in the old server when the new one has the database, and ends there.
      const slow = call<number[]>(url, {
        kind: "action",
        path: "notes:slowly",
        args: { by: "slow", ms: 2_500 },
      });
      await until(async () =>
        (await call<number[]>(url, { kind: "query", path: "notes:of", args: { by: "slow" } })).length > 0
      );

      const successor = second.use(serve(folder, "--takeover", "--functions", folder.at("two")));
      const taken = performance.now();
      await until(() => codes.length > 0);
      const closedAt = performance.now();
      await until(() => versions.every((version) => version === 2));
      tell(`sockets closed after ${closedAt - taken} ms, all back ${performance.now() - closedAt} ms later`);
      assert.equal((await first.exited).code, 0);
      tell(`old server gone after ${performance.now() - taken} ms`);
      const before = callers.map(({ acknowledged }) => acknowledged.length);
      await until(() => callers.every(({ acknowledged }, i) => acknowledged.length > (before[i] ?? 0)));
      assert.deepEqual(await slow, [1, 2]);
      for (const caller of callers) {
        await caller.stop();
        assert.deepEqual(caller.failures, [], caller.by);
        await checkWrites(url, caller);
      }
      tell(`${callers.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0)} calls, none failed`);
      assert.deepEqual(codes, [1012]);
      assert.ok(clients.every((client) => client.connectionState().connectionCount === 1));
      for (const client of clients) client.close();
      assert.equal(await Deno.readTextFile(folder.at("data", "lock")), `${successor.pid} serve\n`);
      ended = successor.exited;
    },
  );

  await t.step("[TO1] where one took over, an ordinary start finds the port in use as ever", async () => {
    await using elsewhere = new TempFolder();
    const samePort = serve(elsewhere, "--port", String(port), "--functions", folder.at("one"));
    assert.equal((await samePort.exited).code, 1);
    await samePort[Symbol.asyncDispose]();
    assert.match(samePort.lastOutput, /Port \d+ of 127\.0\.0\.1 is in use/);
  });

  await t.step("[TO1] the one that took over can be taken over", async () => {
    await until(() => Deno.stat(folder.at("data", "takeover.sock")).then(() => true, () => false));
    await using third = serve(folder, "--takeover", ...replicated, folder.at("one"));
    assert.equal(await urlOf(third), url);
    assert.equal((await ended)?.code, 0);
    // It ships once the other one is gone.
    await until(async () =>
      (await Array.fromAsync(Deno.readDir(folder.at("replica", "owners")))).length === 2
    );
    assert.equal(await call(url, { kind: "query", path: "notes:version" }), 1);
    Deno.kill(third.pid, "SIGTERM");
    assert.equal((await third.exited).code, 0);
  });
});

Deno.test("[TO5] a server that cannot be asked is named in a line", async () => {
  await using folder = await TempFolder.with({ "one/schema.ts": schema(""), "one/notes.ts": functions(1) });
  using _lock = await DataLock.acquire(folder.at("data"), { by: "serve" });
  await using started = serve(folder, "--port", "0", "--takeover", "--functions", folder.at("one"));
  assert.equal((await started.exited).code, 1);
  assert.match(started.lastOutput, /A takeover is not possible.* stop it first\b/);
});
