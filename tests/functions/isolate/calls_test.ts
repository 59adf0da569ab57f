/** How calls end: results, errors, logs, and what a handler must not do. */
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
      // Another copy of the class, as a bundler makes it.
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

