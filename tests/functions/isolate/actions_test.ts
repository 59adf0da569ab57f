/** Actions: their calls through main, logs, environment, and concurrency. */
import assert from "node:assert/strict";
import type { SubCall } from "../../../mod/functions/wire/messages.ts";
import { call, errorOf, user, Workspace } from "./support.ts";

const app = {
  "acts.ts": `
    import { anyApi, untypedAction, untypedInternalAction, UserError } from "syncline/server";
    import { z } from "zod";
    export const sum = untypedAction({
      args: { a: z.number() },
      handler: async (ctx, { a }) => {
        ctx.log.info("before");
        const b = await ctx.runQuery(anyApi.numbers.one, { a });
        const c = await ctx.runMutation("numbers:two");
        console.log("after", b, c);
        return { total: a + b + c, user: ctx.auth.userId() };
      },
    });
    export const passesOn = untypedAction((ctx) => ctx.runMutation("numbers:fails"));
    export const catches = untypedAction(async (ctx) => {
      try { await ctx.runMutation("numbers:fails"); } catch (error) {
        return [error instanceof UserError, error.code ?? null, error.message, error.data ?? null];
      }
    });
    export const environment = untypedAction((ctx) => [ctx.env.GREETING, ctx.env.SECRET_OF_THE_SERVER ?? null, process.env.GREETING, Deno.env.get("GREETING")]);
    export const asksCtx = untypedAction((ctx) => [ctx.env.MAIL_KEY ?? null, ctx.env.MAIL_KEY ?? null, ctx.env.GREETING]);
    const atLoad = process.env.ASKED_WHILE_LOADING;
    export const asks = untypedAction(() => [process.env.STRIPE_KEY ?? null, process.env.STRIPE_KEY ?? null, process.env.NODE_ENV ?? null, process.env.GREETING, atLoad ?? null]);
    export const changesEnv = untypedAction((ctx) => { ctx.env.GREETING = "x"; });
    export const waits = untypedAction(async (ctx, { name }) => {
      console.log("start", name);
      await ctx.runQuery("numbers:one", { name });
      console.log("end", name);
      return name;
    });
    let kept;
    export const keep = untypedAction((ctx) => { kept = ctx; });
    export const useKept = untypedAction(() => kept.runQuery("numbers:one"));
    export const badArgs = untypedAction((ctx) => ctx.runQuery("numbers:one", { when: new Date() }));
    export const nowhere = untypedAction((ctx) => ctx.runQuery(undefined));
    export const hidden = untypedInternalAction(() => "hidden");
    export const leaves = untypedAction(() => {
      setTimeout(() => { throw new Error("from a timer"); }, 1);
      Promise.reject(new Error("from a promise"));
      return "left";
    });
    export const clock = untypedAction(async () => {
      const before = Date.now();
      await new Promise((done) => setTimeout(done, 5));
      return Date.now() - before;
    });
    export const fetches = untypedAction(async (_ctx, { port }) => await (await fetch("http://127.0.0.1:" + port)).text());
    export const net = untypedAction(async (_ctx, { port }) => {
      const { connect } = await import("node:net");
      return await new Promise((resolve, reject) => {
        const socket = connect(port, "127.0.0.1", () => { socket.destroy(); resolve("connected"); });
        socket.on("error", reject);
      });
    });
  `,
};

Deno.test("actions call queries and mutations through main, and use the network", async (t) => {
  await using workspace = new Workspace(app);
  await using runner = await workspace.start("runner", { env: { GREETING: "hello" } });

  await t.step(
    "calls carry path and args, results are returned, and log lines of both keep their order",
    async () => {
      const seen: SubCall[] = [];
      const { value, logLines } = await runner.act("acts:sum", { a: 1 }, {
        call: { identity: user("u1") },
        answer: (sub) => {
          seen.push(sub);
          return {
            outcome: { value: 0, logLines: [`[INFO] in ${sub.udfPath}`] },
            segments: [`${seen.length * 10}`],
          };
        },
      });
      assert.deepEqual(value, { total: 31, user: "u1" });
      assert.deepEqual(seen.map(({ kind, udfPath, args }) => [kind, udfPath, args]), [
        ["query", "numbers:one", { a: 1 }],
        ["mutation", "numbers:two", {}],
      ]);
      assert.deepEqual(logLines, [
        "[INFO] before",
        "[INFO] in numbers:one",
        "[INFO] in numbers:two",
        "[INFO] after 10 20",
      ]);
    },
  );

  await t.step("a called function's user error can be caught as one, or passes on as one", async () => {
    const answer = () => ({
      outcome: {
        error: { kind: "user", message: "Too late", data: { code: "late", data: [1] } },
        logLines: [],
      },
    } as const);
    assert.deepEqual((await runner.act("acts:catches", {}, { answer })).value, [true, "late", "Too late", [
      1,
    ]]);
    const { kind, message, data } = errorOf(await runner.act("acts:passesOn", {}, { answer }));
    assert.deepEqual([kind, message, data], ["user", "Too late", { code: "late", data: [1] }]);
  });

  await t.step("any other error of a called function is the action's own, and internal", async () => {
    const answer = () => ({
      outcome: { error: { kind: "unknown_function", message: "There is none", data: null }, logLines: [] },
    } as const);
    const { kind, message } = errorOf(await runner.act("acts:passesOn", {}, { answer }));
    assert.deepEqual([kind, message], ["internal", "There is none"]);
  });

  await t.step("the environment is the app's own and cannot be changed", async () => {
    assert.deepEqual((await runner.act("acts:environment")).value, ["hello", null, "hello", "hello"]);
    assert.match(errorOf(await runner.act("acts:changesEnv")).message, /read only/);
  });

  await t.step("DV5 an undefined variable is logged once, with the alternative", async () => {
    const first = await runner.act("acts:asks");
    assert.deepEqual(first.value, [null, null, null, "hello", null]);
    assert.deepEqual(first.logLines, [
      '[WARN] process.env.STRIPE_KEY is not set: an app\'s variables are ctx.env in actions, such as ctx.env.STRIPE_KEY, from --env-file or "syncline env set"',
    ]);
    assert.deepEqual((await runner.act("acts:asks")).logLines, []);
    const ofCtx = await runner.act("acts:asksCtx");
    assert.deepEqual([ofCtx.value, ofCtx.logLines], [[null, null, "hello"], [
      '[WARN] ctx.env.MAIL_KEY is not set: add it to .env for "syncline dev", or run "syncline env set MAIL_KEY=value" on the server',
    ]]);
  });

  await t.step("actions run concurrently, each with its own log lines", async () => {
    const names = ["a", "b", "c"];
    for (const [index, name] of names.entries()) {
      await runner.send({
        type: "RunAction",
        call: 1000 + index,
        order: 1000 + index,
        ...call("acts:waits", { name }),
      });
    }
    // All have started before any of them is answered.
    const waiting: SubCall[] = [];
    while (waiting.length < names.length) {
      const { message } = await runner.next();
      assert.ok(message.type === "SubCall", message.type);
      waiting.push(message);
    }
    // The last one ends first.
    for (const { call: number, sub } of waiting.toSorted((a, b) => b.call - a.call)) {
      await runner.send(
        { type: "SubAnswer", call: number, sub, outcome: { value: 0, logLines: [] } },
        ["1"],
      );
      const { message } = await runner.next();
      assert.ok(message.type === "ActionDone", message.type);
      const name = names[number - 1000];
      assert.deepEqual(
        [message.call, message.outcome.logLines],
        [number, [`[INFO] start ${name}`, `[INFO] end ${name}`]],
      );
    }
  });

  await t.step("a ctx does not outlive its action", async () => {
    await runner.act("acts:keep");
    assert.match(errorOf(await runner.act("acts:useKept")).message, /"acts:keep" has ended/);
  });

  await t.step("misuse gets an error with advice", async () => {
    assert.match(
      errorOf(await runner.act("acts:badArgs")).message,
      /arguments of "numbers:one" at when is a Date/,
    );
    assert.match(
      errorOf(await runner.act("acts:nowhere")).message,
      /neither a function path nor a function reference/,
    );
    assert.equal(errorOf(await runner.act("acts:hidden")).kind, "unknown_function");
    assert.equal((await runner.act("acts:hidden", {}, { call: { origin: "server" } })).value, "hidden");
  });

  await t.step("errors of promises without await do not end the isolate", async () => {
    assert.equal((await runner.act("acts:leaves")).value, "left");
    assert.ok(((await runner.act("acts:clock")).value as number) >= 4);
  });

  await t.step("the network is available, and a heartbeat is answered", async () => {
    await using server = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen() {} },
      () => new Response("reached"),
    );
    assert.equal((await runner.act("acts:fetches", { port: server.addr.port })).value, "reached");
    assert.equal((await runner.act("acts:net", { port: server.addr.port })).value, "connected");
    await runner.send({ type: "KeepAlive" });
    assert.deepEqual((await runner.next()).message, { type: "KeepAlive" });
  });

  const { code, stderr } = await runner.close();
  assert.equal(code, 0);
  assert.match(
    stderr,
    /A promise that was left behind was rejected: Error: from a promise\n +at .*acts\.ts:/,
  );
  assert.match(stderr, /An error was not caught: Error: from a timer/);
});
