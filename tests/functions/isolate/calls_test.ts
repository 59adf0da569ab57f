/** Outcomes of calls: results, errors, logs, and forbidden operations of handlers. */
import assert from "node:assert/strict";
import { call, errorOf, user, Workspace } from "./support.ts";

const app = {
  "schema.ts": `
    import { defineSchema, defineTable, id } from "syncline/server";
    import { z } from "zod";
    export default defineSchema({
      notes: defineTable({ text: z.string(), of: id("notes").optional() }).index("by_text", ["text"]),
    });
  `,
  "index.ts": `
    import { untypedQuery } from "syncline/server";
    export const ping = untypedQuery(() => "pong");
    export default untypedQuery(() => "default");
  `,
  "deep/er/notes.ts": `
    import { untypedInternalQuery, untypedMutation, untypedQuery, UserError } from "syncline/server";
    import { z } from "zod";
    export const add = untypedMutation({
      args: { text: z.string().min(1), of: z.string().optional() },
      handler: (ctx, args) => ctx.db.insert("notes", args),
    });
    export const list = untypedQuery((ctx) => ctx.db.query("notes").collect());
    export const hidden = untypedInternalQuery(() => 1);
    export const userError = untypedMutation(() => {
      throw new UserError("full", "The box is full", { size: 3 });
    });
    export const foreignUserError = untypedMutation(() => {
      // Another copy of the class, like a bundler creates.
      throw Object.assign(new Error("Full"), { [Symbol.for("syncline.userError")]: true, code: "full", data: undefined });
    });
    export const badUserError = untypedQuery(() => {
      throw new UserError("full", "x", { when: new Date() });
    });
    export const notAnError = untypedQuery(() => {
      throw { status: 3 };
    });
    export const thrownNothing = untypedQuery(() => {
      throw undefined;
    });
    export const hostile = untypedQuery(() => {
      throw new Proxy(new Error("x"), { get() { throw new Error("inner"); } });
    });
    export function fails(): never {
      throw new RangeError("deep inside");
    }
    export const stack = untypedQuery(async () => {
      await null;
      fails();
    });
    export const unrun = untypedQuery((ctx) => ctx.db.query("notes").order("desc"));
    export const unawaited = untypedQuery((ctx) => ({ note: ctx.db.query("notes").first() }));
    export const nan = untypedQuery(() => ({ a: [1, NaN] }));
    export const big = untypedQuery(() => "x".repeat(17 * 1024 * 1024));
    export const nothing = untypedQuery(() => undefined);
    export const never = untypedQuery(() => new Promise(() => {}));
    export const slowDigest = untypedQuery(async () => {
      const bytes = await crypto.subtle.digest("SHA-256", new Uint8Array(3));
      return bytes.byteLength;
    });
    export const timer = untypedQuery(() => new Promise((done) => setTimeout(done, 1)));
    export const fetches = untypedMutation(async () => await (await fetch("http://localhost")).text());
    export const writes = untypedQuery((ctx) => (ctx as any).db.insert("notes", { text: "x" }));
    export const logs = untypedQuery((ctx) => {
      ctx.log.info("seen", { count: 2 });
      console.warn("careful", [1]);
      console.log("plain");
      ctx.log.error("bad", { why: "two words" });
      return null;
    });
    export const flood = untypedQuery(() => {
      for (let i = 0; i < 100_000; i++) console.log("line", i);
      return null;
    });
    export const who = untypedQuery((ctx) => ({ user: ctx.auth.userId(), identity: ctx.auth.identity() }));
    export const ids = untypedQuery((ctx) => ctx.auth.identity()?.userId ?? null);
    export const session = untypedQuery((ctx) => ctx.auth.sessionId());
    export const spread = untypedQuery(({ db, ...rest }) => ({ ...rest }.auth.userId()));
  `,
};

Deno.test("queries return their value, or an error with a cause", async (t) => {
  await using workspace = new Workspace(app);
  await using writer = await workspace.start("writer");
  await using reader = await workspace.start("reader");
  const notes = (name: string) => `deep/er/notes:${name}`;

  await t.step("functions of index.ts have bare names, default exports are called default", async () => {
    assert.equal((await reader.query("ping")).value, "pong");
    assert.equal((await reader.query("default")).value, "default");
    assert.deepEqual(
      writer.booted?.type === "Ready" && writer.booted.functions.find(([path]) => path === notes("hidden")),
      [notes("hidden"), { kind: "query", visibility: "internal" }],
    );
  });

  await t.step("a mutation's write is visible to the next query", async () => {
    const { value, ts } = await writer.mutate(notes("add"), { text: "one" });
    const { value: rows } = await reader.query(notes("list"));
    assert.deepEqual((rows as { _id: string; text: string }[]).map(({ _id, text }) => [_id, text]), [[
      value,
      "one",
    ]]);
    assert.equal(ts, 1);
  });

  await t.step(
    "unknown, internal and misused functions are indistinguishable unless the caller may know them",
    async () => {
      const missing = errorOf(await reader.query("no:such"));
      assert.deepEqual([missing.kind, missing.message], [
        "unknown_function",
        'There is no function "no:such"',
      ]);
      const hidden = errorOf(await reader.query(notes("hidden")));
      assert.equal(hidden.message, `There is no function "${notes("hidden")}"`);
      assert.equal((await reader.query(notes("hidden"), {}, { origin: "server" })).value, 1);
      const kind = errorOf(await writer.mutate(notes("list")));
      assert.deepEqual([kind.kind, kind.message], [
        "unknown_function",
        `"${notes("list")}" is a query, not a mutation`,
      ]);
      assert.equal(errorOf(await reader.query("__proto__")).kind, "unknown_function");
    },
  );

  await t.step("the server itself can query in the writer, which then writes nothing", async () => {
    const { value } = await writer.mutate(notes("list"), {}, { origin: "system" });
    assert.equal((value as unknown[]).length, 1);
    const error = errorOf(await writer.mutate(notes("writes"), {}, { origin: "system" }));
    assert.match(error.message, /^A query cannot write/);
    assert.equal(((await reader.query(notes("list"))).value as unknown[]).length, 1);
  });

  await t.step("user errors carry code and data, also when the class is another copy", async () => {
    const error = errorOf(await writer.mutate(notes("userError")));
    assert.deepEqual(
      [error.kind, error.message, error.data],
      ["user", "The box is full", { code: "full", data: { size: 3 } }],
    );
    const foreign = errorOf(await writer.mutate(notes("foreignUserError")));
    assert.deepEqual([foreign.kind, foreign.data], ["user", { code: "full", data: null }]);
    const bad = errorOf(await reader.query(notes("badUserError")));
    assert.equal(bad.kind, "internal");
    assert.match(bad.message, /data of a UserError at when is a Date/);
  });

  await t.step("any thrown value becomes an error", async () => {
    assert.match(errorOf(await reader.query(notes("notAnError"))).message, /not an Error: \{ status: 3 \}/);
    assert.match(errorOf(await reader.query(notes("thrownNothing"))).message, /not an Error: undefined/);
    assert.match(errorOf(await reader.query(notes("hostile"))).message, /cannot be read/);
  });

  await t.step("stack traces contain only the author's files and lines", async () => {
    const { message, stack } = errorOf(await reader.query(notes("stack")));
    assert.equal(message, "deep inside");
    const source = app["deep/er/notes.ts"].split("\n");
    const line = source.findIndex((text) => text.includes("RangeError")) + 1;
    const caller = source.findIndex((text) => text.trim() === "fails();") + 1;
    assert.deepEqual(stack?.split("\n").map((frame) => frame.trim().replace(/:\d+\)?$/, "")), [
      `at fails (deep/er/notes.ts:${line}`,
      `at Object.handler (deep/er/notes.ts:${caller}`,
    ]);
  });

  await t.step("results that are not JSON are errors with advice", async () => {
    const messages: Record<string, RegExp> = {
      unrun: /is a query that was not run: end it with \.collect\(\)/,
      unawaited: /at note is a promise: await it/,
      nan: /at a\[1\] is NaN/,
      big: /more than the limit of 16777216/,
    };
    for (const [name, message] of Object.entries(messages)) {
      const error = errorOf(await reader.query(notes(name)));
      assert.equal(error.kind, "internal");
      assert.match(error.message, message);
    }
    assert.equal((await reader.query(notes("nothing"))).value, null);
  });

  await t.step(
    "a handler that never resolves fails immediately, one that waits for the platform does not",
    async () => {
      assert.match(
        errorOf(await reader.query(notes("never"))).message,
        /awaits something that never happens/,
      );
      assert.equal((await reader.query(notes("slowDigest"))).value, 32);
    },
  );

  await t.step(
    "timers, fetch and writes in the wrong function get an error that names the right one",
    async () => {
      assert.match(
        errorOf(await reader.query(notes("timer"))).message,
        /setTimeout is not available in queries/,
      );
      assert.match(
        errorOf(await writer.mutate(notes("fetches"))).message,
        /fetch is not available .* use it in an action/,
      );
      assert.match(
        errorOf(await reader.query(notes("writes"))).message,
        /A query cannot write .* make the function a mutation/,
      );
    },
  );

  await t.step("log lines have levels and fields, and a flood is cut", async () => {
    const { logLines } = await reader.query(notes("logs"));
    assert.deepEqual(logLines, [
      "[INFO] seen count=2",
      "[WARN] careful [ 1 ]",
      "[INFO] plain",
      '[ERROR] bad why="two words"',
    ]);
    const flood = await reader.query(notes("flood"));
    assert.equal(flood.logLines.length, 257);
  });

  await t.step("reads of the identity are reported", async () => {
    const identity = user("u1", "s1");
    const [ping, ids, who, session, spread] = (await reader.queryBatch(
      ["ping", notes("ids"), notes("who"), notes("session"), notes("spread")].map((path) =>
        call(path, {}, { identity })
      ),
    )).answers;
    assert.equal(ping?.details.scope, "nothing");
    assert.deepEqual([ids?.details.scope, ids?.value], ["principal", "u1"]);
    // Claims belong to one token, so a result that depends on them belongs to one session.
    assert.deepEqual([who?.details.scope, who?.value], ["session", {
      user: "u1",
      identity: { userId: "u1", adminId: null, claims: {} },
    }]);
    assert.deepEqual([session?.details.scope, session?.value], ["session", "s1"]);
    assert.deepEqual([spread?.details.scope, spread?.value], ["principal", "u1"]);
    const anonymous = await reader.query(notes("who"));
    assert.deepEqual([anonymous.details.scope, anonymous.value], ["principal", {
      user: null,
      identity: null,
    }]);
  });
});
