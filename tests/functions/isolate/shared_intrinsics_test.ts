/** A call that changes built-in objects fails at most itself; packages that extend them still load. */
import assert from "node:assert/strict";
import type { IsolateRole } from "../../../mod/functions/wire/messages.ts";
import { type Answer, errorOf, type TestIsolate, Workspace } from "./support.ts";

/** Each tries to break what our own code does after the call. */
const ATTACKS: Readonly<Record<string, string>> = {
  "toJSON of lists": `define(Array.prototype, "toJSON", () => "HACK")`,
  "toJSON of objects": `define(Object.prototype, "toJSON", () => "HACK")`,
  "toJSON of everything else": `
    for (const name of ["Function", "Map", "Set", "Promise", "Error", "Uint8Array", "String", "Number", "Boolean"]) {
      try { define(globalThis[name].prototype, "toJSON", () => "HACK"); } catch {}
    }`,
  "toJSON above lists":
    `Object.setPrototypeOf(Array.prototype, { toJSON: () => "HACK", __proto__: Object.prototype })`,
  "then of lists": `define(Array.prototype, "then", (resolve) => resolve("HACK"))`,
  "the first index":
    `Object.defineProperty(Array.prototype, "0", { get() { return "HACK"; }, set() {}, configurable: true })`,
  "methods of lists": `
    for (const key of Reflect.ownKeys(Array.prototype)) {
      try { if (typeof [][key] === "function") define(Array.prototype, key, () => "HACK"); } catch {}
    }`,
  "lists' constructor":
    `define(Array.prototype, "constructor", class { static [Symbol.species] = function () { return {}; } })`,
  "lists' species": `Object.defineProperty(Array, Symbol.species, { value: function () { return {}; } })`,
  "iterators": `
    for (const object of [[].values(), new Map().values(), new Set().values(), ""[Symbol.iterator](), (function* () {})(), (async function* () {})()]) {
      for (let one = object; one !== Object.prototype; one = Object.getPrototypeOf(one)) {
        try { define(one, "next", () => ({ done: true })); } catch {}
        try { define(one, Symbol.iterator, () => { throw new Error("HACK"); }); } catch {}
      }
    }`,
  "promises": `
    for (const key of ["then", "catch", "finally", "constructor"]) {
      try { define(Promise.prototype, key, () => { throw new Error("HACK"); }); } catch {}
    }
    for (const key of ["resolve", "all", "withResolvers", Symbol.species]) {
      try { Object.defineProperty(Promise, key, { value: () => { throw new Error("HACK"); } }); } catch {}
    }`,
  "bytes": `
    for (const key of ["length", "subarray", "set", "fill", "slice", "buffer"]) {
      try { Object.defineProperty(Uint8Array.prototype, key, { value: 0, configurable: true }); } catch {}
    }`,
  "patterns": `
    for (const key of Reflect.ownKeys(RegExp.prototype)) {
      try { define(RegExp.prototype, key, () => { throw new Error("HACK"); }); } catch {}
    }`,
  "texts, maps and numbers": `
    for (const { prototype } of [String, Map, WeakMap, Set, Number, Symbol, TextEncoder, TextDecoder, DataView]) {
      for (const key of Reflect.ownKeys(prototype)) {
        try { define(prototype, key, () => { throw new Error("HACK"); }); } catch {}
      }
    }`,
  "JSON": `JSON.stringify = () => "HACK"`,
  "errors": `
    Error.prepareStackTrace = () => { throw new Error("HACK"); };
    Object.defineProperty(Error, Symbol.hasInstance, { value: () => { throw new Error("HACK"); }, configurable: true });`,
  "connections": `
    const port = Number((globalThis.process.env ?? {}).PORT ?? 0);
    if (port > 0) {
      return Deno.connect({ port, hostname: "127.0.0.1" }).then((conn) => {
        for (let one = conn; one !== Object.prototype; one = Object.getPrototypeOf(one)) {
          for (const key of ["read", "write"]) {
            if (Object.hasOwn(one, key)) define(one, key, () => { throw new Error("HACK"); });
          }
        }
        conn.close();
      });
    }`,
};

const app = {
  "schema.ts": `
    import { defineSchema, defineTable } from "syncline/server";
    import { z } from "zod";
    export default defineSchema({ notes: defineTable({ text: z.string(), tags: z.array(z.string()) }).index("by_text", ["text"]) });
  `,
  "a.js": `
    import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
    import { z } from "zod";
    const define = (object, key, value) => Object.defineProperty(object, key, { value, configurable: true, writable: true });
    const attacks = { ${
    Object.entries(ATTACKS).map(([name, code]) => `${JSON.stringify(name)}: () => { ${code} },`).join("\n")
  } };
    const attack = async (_ctx, { name }) => { await attacks[name](); return ["x"]; };
    export const badQuery = untypedQuery(attack);
    export const badMutation = untypedMutation(attack);
    export const badAction = untypedAction(attack);
    const args = { text: z.string().regex(/^h[a-z]+$/), list: z.array(z.number()) };
    const own = ({ list }) => ({ list: list.map((n) => n + 1), all: [...list], text: "a b".replace(/ /, "-") });
    const failing = () => { console.log("before", { a: [1, 2] }); throw new Error("mine"); };
    export const goodQuery = untypedQuery({ args, handler: async (ctx, args) => [own(args), (await ctx.db.query("notes").withIndex("by_text", (q) => q.gte("text", "a")).collect()).length > 0] });
    export const goodMutation = untypedMutation({ args, handler: async (ctx, args) => { await ctx.db.insert("notes", { text: "t", tags: ["u"] }); return [own(args), true]; } });
    export const goodAction = untypedAction({ args, handler: async (ctx, args) => [own(args), await ctx.runQuery("a:goodQuery", {})] });
    export const failingQuery = untypedQuery(failing);
    export const failingMutation = untypedMutation(failing);
    export const failingAction = untypedAction(failing);
  `,
};

const KINDS = { writer: "Mutation", reader: "Query", runner: "Action" } as const;

function run(isolate: TestIsolate, role: IsolateRole, name: string, args = {}): Promise<Answer> {
  const path = `a:${name}${KINDS[role]}`;
  if (role === "writer") return isolate.mutate(path, args);
  if (role === "reader") return isolate.query(path, args);
  return isolate.act(path, args, {
    answer: () => ({ outcome: { value: 0, logLines: [] }, segments: ["true"] }),
  });
}

Deno.test("a call that patches shared objects fails at most itself", async (t) => {
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, () => new Response("x"));
  const env = { PORT: `${server.addr.port}` };
  await using workspace = new Workspace(app);
  await using first = await workspace.start("writer");
  const args = { text: "hello", list: [1, 2] };
  const good = [{ list: [2, 3], all: [1, 2], text: "a-b" }, true];
  assert.deepEqual((await run(first, "writer", "good", args)).value, good);
  await first.close();
  for (const role of ["writer", "reader", "runner"] as const) {
    await using isolate = await workspace.start(role, { env });
    for (const name of Object.keys(ATTACKS)) {
      await t.step(`${role}: ${name}`, async () => {
        const bad = await run(isolate, role, "bad", { name });
        if (bad.outcome.ok) assert.deepEqual(bad.value, ["x"]);
        assert.deepEqual((await run(isolate, role, "good", args)).value, good);
        const refused = errorOf(await run(isolate, role, "good", { ...args, text: "Hello" }));
        assert.equal(refused.kind, "args");
        const failed = await run(isolate, role, "failing");
        assert.equal(errorOf(failed).kind, "internal");
        assert.deepEqual(failed.logLines, ["[INFO] before { a: [ 1, 2 ] }"]);
        if (name !== "errors") assert.equal(errorOf(failed).message, "mine");
        assert.deepEqual((await run(isolate, role, "good", args)).value, good);
      });
    }
  }
});

Deno.test("a patch that cannot be undone ends the isolate, which names the call", async () => {
  await using workspace = new Workspace({
    "a.js": `
      import { untypedQuery } from "syncline/server";
      export const bad = untypedQuery(() => { Object.defineProperty(RegExp.prototype, "exec", { value: null, configurable: false, writable: false }); });
    `,
  });
  await using _writer = await workspace.start("writer");
  await using reader = await workspace.start("reader");
  await assert.rejects(reader.query("a:bad"), /Cannot redefine property: exec/);
  assert.equal((await reader.child.status).code, 1);
});

const load = (code: string) => ({
  "a.js":
    `import { untypedQuery } from "syncline/server"; ${code}; export const ask = untypedQuery(() => [typeof [].lastOf, [1, 2].map === wrapped, [][0] ?? null]);`,
});

Deno.test("packages may add methods while they load, cannot replace existing ones, and can be subclassed", async () => {
  await using workspace = new Workspace(load(`
    Array.prototype.lastOf = function () { return this[this.length - 1]; };
    Object.defineProperty(Array.prototype, Symbol("own"), { value: 1 });
    Promise.prototype.done = function () {};
    const { map } = Array.prototype;
    const wrapped = Array.prototype.map = function (...args) { return map.apply(this, args); };
    Array.prototype[0] = "HACK";
    function List() {}
    List.prototype = Object.create(Array.prototype);
    List.prototype.constructor = List;
    List.prototype.push = function () {};
  `));
  await using _writer = await workspace.start("writer");
  await using reader = await workspace.start("reader");
  assert.equal(reader.booted?.type, "Ready", JSON.stringify(reader.booted));
  assert.deepEqual((await reader.query("a:ask")).value, ["function", false, null]);
});

for (
  const [code, message] of Object.entries({
    "Array.prototype.toJSON = () => 1":
      /^toJSON cannot be added to Array\.prototype: calls that have nothing to do/,
    "Uint8Array.prototype.subarray = () => 1": /cannot be added to Uint8Array\.prototype|Cannot assign/,
    "Object.setPrototypeOf(Array.prototype, { toJSON() {} })":
      /^The prototype of Array\.prototype cannot be changed/,
  })
) {
  Deno.test(`an app that throws ${code} while it loads is reported as broken`, async () => {
    await using workspace = new Workspace(load(`const wrapped = null; ${code}`));
    await using writer = await workspace.start("writer");
    assert.ok(writer.booted?.type === "Broken", JSON.stringify(writer.booted));
    assert.match(writer.booted.message, message);
  });
}
