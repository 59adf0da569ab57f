/** App code that patches built-in objects: the service keeps working, and app code gets none of its handles. */
import assert from "node:assert/strict";
import { Workspace } from "./support.ts";

const app = {
  "schema.ts": `
    import { defineSchema, defineTable } from "syncline/server";
    import { z } from "zod";
    export default defineSchema({ notes: defineTable({ text: z.string() }).index("by_text", ["text"]) });
  `,
  "spy.js": `
    import { untypedMutation, untypedQuery } from "syncline/server";
    const apply = Reflect.apply;
    const methods = ["write", "prepare", "all", "close", "read", "sendText", "commitGroup", "openGroup", "rollback"];
    const seen = {};
    let calls = 0;
    let busy = false;
    // Records every passing value that resembles a handle.
    const look = (where, value) => {
      if (typeof value !== "object" || value === null || value === Promise) return;
      for (let i = 0; i < methods.length; i++) {
        try { if (typeof value[methods[i]] === "function") seen[where + " " + methods[i]] = true; } catch {}
      }
    };
    const generator = function* () {};
    const asyncGenerator = async function* () {};
    const prototypes = [
      Array.prototype, Map.prototype, Set.prototype, WeakMap.prototype, WeakSet.prototype, Promise.prototype, RegExp.prototype,
      Object.prototype, Error.prototype, String.prototype, Number.prototype, Uint8Array.prototype,
      Object.getPrototypeOf(Uint8Array.prototype), Object.getPrototypeOf([].values()),
      Object.getPrototypeOf(new Map().entries()), Object.getPrototypeOf(generator.prototype),
      Object.getPrototypeOf(asyncGenerator.prototype), JSON, Math, Reflect, Object, Array, Promise,
    ];
    for (const prototype of prototypes) {
      for (const key of Reflect.ownKeys(prototype)) {
        const { value: original } = Object.getOwnPropertyDescriptor(prototype, key);
        if (typeof original !== "function" || key === "constructor") continue;
        const patched = function (...args) {
          if (busy) return apply(original, this, args);
          busy = true;
          calls++;
          try {
            look(String(key) + " this", this);
            for (let i = 0; i < args.length; i++) look(String(key) + " argument", args[i]);
          } finally { busy = false; }
          return new.target === undefined ? apply(original, this, args) : Reflect.construct(original, args, new.target);
        };
        try { prototype[key] = patched; } catch {}
      }
    }
    // Setters intercept assignments to properties that an object does not have yet.
    for (const key of ["conn", "database", "db", "writes", "reads", "frame", "call", "app", "sender", "0", "1", "statement"]) {
      try {
        Object.defineProperty(Object.prototype, key, {
          configurable: true,
          get() { return undefined; },
          set(value) {
            look("set " + key, value);
            Object.defineProperty(this, key, { value, writable: true, configurable: true, enumerable: true });
          },
        });
      } catch {}
    }
    export const add = untypedMutation({ handler: (ctx, { text }) => ctx.db.insert("notes", { text }) });
    export const list = untypedQuery(async (ctx) => {
      const rows = await ctx.db.query("notes").withIndex("by_text", (q) => q.gte("text", "a")).collect();
      return rows.map(({ text }) => text);
    });
    const handler = () => ({ seen: Object.keys(seen), calls });
    export const reportOfWriter = untypedMutation({ handler });
    export const reportOfReader = untypedQuery({ handler });
  `,
};

Deno.test("patched prototypes do not affect the server's code and catch no handle", async () => {
  await using workspace = new Workspace(app);
  await using writer = await workspace.start("writer");
  await using reader = await workspace.start("reader");
  assert.equal(reader.booted?.type, "Ready", JSON.stringify(reader.booted));
  for (const text of ["b", "c", "a"]) {
    const { outcome } = await writer.mutate("spy:add", { text });
    assert.equal(outcome.ok, true, JSON.stringify(outcome));
  }
  assert.deepEqual((await reader.query("spy:list")).value, ["a", "b", "c"]);
  for (
    const { value } of [await writer.mutate("spy:reportOfWriter"), await reader.query("spy:reportOfReader")]
  ) {
    const { seen, calls } = value as { seen: string[]; calls: number };
    assert.deepEqual(seen, []);
    assert.ok(calls > 0, "the patches were in place");
  }
});
