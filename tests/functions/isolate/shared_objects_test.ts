/** Objects that app code and the service share in one process must not let app code observe or change the service. */
import assert from "node:assert/strict";
import { call, type TestIsolate, Workspace } from "./support.ts";

const entry = new URL("../../../mod/server/isolate_entry.ts", import.meta.url);
const HASH = "the hash of a password";

/** Patches every function that is reachable by imports and `ctx`, and records the calls. */
const SPY = `
  import * as server from "syncline/server";
  import * as zod from "zod";
  const { apply, construct, ownKeys, getOwnPropertyDescriptor, defineProperty, getPrototypeOf } = Reflect;
  const stringify = JSON.stringify;
  export const seen = [];
  let busy = false;
  const look = (where, value) => {
    if (busy) return;
    busy = true;
    try { if (stringify(value)?.includes(${JSON.stringify(HASH)})) seen.push(where); } catch {}
    busy = false;
  };
  const done = new Set();
  const patchAll = (where, object, depth = 0) => {
    if (object === null || (typeof object !== "object" && typeof object !== "function")) return;
    if (done.has(object) || depth > 6 || object === globalThis) return;
    done.add(object);
    for (const key of ownKeys(object)) {
      const path = where + "." + String(key);
      const property = getOwnPropertyDescriptor(object, key);
      for (const part of ["value", "get", "set"]) {
        const original = property?.[part];
        if (typeof original === "function" && key !== "constructor") {
          const patched = function (...args) {
            look(path + " this", this);
            for (const arg of args) look(path, arg);
            const result = new.target === undefined ? apply(original, this, args) : construct(original, args, new.target);
            look(path + " result", result);
            return result;
          };
          try { if (original.prototype !== undefined) patched.prototype = original.prototype; } catch {}
          try { defineProperty(object, key, { ...property, [part]: patched }); } catch {}
        }
        patchAll(path, original, depth + 1);
      }
    }
    patchAll(where + ".__proto__", getPrototypeOf(object), depth + 1);
  };
  // Built-in objects have separate tests.
  const language = [Object, Function, Array, Promise, Map, Set, WeakMap, WeakSet, Error, TypeError, RangeError, RegExp, String,
    Number, Boolean, Symbol, Date, BigInt, Uint8Array, async function () {}, function* () {}, async function* () {}];
  for (const one of language) {
    for (let object = one; object !== null; object = getPrototypeOf(object)) done.add(object);
    for (let object = one.prototype; object != null; object = getPrototypeOf(object)) done.add(object);
  }
  export const spy = (ctx) => {
    patchAll("zod", zod);
    patchAll("zod.config", zod.config());
    try { globalThis.__zod_globalConfig.postProcessor = (made) => look("postProcessor", made); } catch {}
    try { globalThis.__zod_globalConfig = { postProcessor: (made) => look("postProcessor", made) }; } catch {}
    for (const make of [zod.z.string, zod.z.object, zod.z.int]) patchAll("schema", make({}));
    patchAll("server", { ...server });
    patchAll("id", server.id("notes"));
    patchAll("table", server.defineTable({}));
    patchAll("router", server.httpRouter());
    patchAll("crons", server.cronJobs());
    patchAll("ctx", ctx);
    if (ctx.db) {
      const query = ctx.db.query("notes");
      patchAll("query", query);
      patchAll("iterator", query[Symbol.asyncIterator]?.());
      query.withIndex("by_text", (q) => (patchAll("range", q), q));
      query.withSearchIndex("search", (q) => (patchAll("search", q), q.search("text", "a")));
      query.filter((q) => (patchAll("filter", q), q.eq(q.field("text"), "a")));
    }
    for (const fail of [() => ctx.db?.get(1), () => ctx.db?.query("none"), () => ctx.env, () => ctx.runQuery("none", {})]) {
      try { Promise.resolve(fail()).catch((error) => patchAll("error", error)); } catch (error) { patchAll("error", error); }
    }
  };
`;
const APP = {
  "schema.ts": `import { defineSchema, defineTable } from "syncline/server"; import { z } from "zod";
    export default defineSchema({ notes: defineTable({ text: z.string() }).index("by_text", ["text"])
      .searchIndex("search", { searchField: "text" }) });`,
  "_spy.js": SPY,
  "a.js":
    `import { untypedMutation, untypedQuery } from "syncline/server"; import { spy, seen } from "./_spy.js";
    export const patch = untypedMutation(async (ctx) => { spy(ctx); await ctx.db.insert("notes", { text: "a" }); });
    export const patchQuery = untypedQuery((ctx) => { spy(ctx); });
    export const report = untypedMutation(() => seen);
    export const add = untypedMutation({ args: {}, handler: (ctx) => ctx.db.insert("notes", { text: "b" }) });`,
  "atload.js":
    `import { untypedQuery } from "syncline/server"; import * as zod from "zod"; import { spy } from "./_spy.js";
    if (globalThis.LOAD) spy({}); export const nothing = untypedQuery(() => 1);`,
};

async function signUp(isolate: TestIsolate, email: string): Promise<unknown> {
  const session = { family: "f", tokenHash: "t", challengeHash: "c", now: 1_000, expiresAt: 1_000_000 };
  const args = { email, passwordHash: HASH, session, requireVerification: true };
  const { answers } = await isolate.batch([call("_system/auth:signUp", args, { origin: "system" })]);
  return answers[0]?.outcome;
}

for (const when of ["in a call", "while it is loaded"]) {
  Deno.test(`patches of app code ${when} do not observe what the server validates, reads and writes`, async () => {
    await using workspace = new Workspace(
      when === "in a call"
        ? APP
        : { ...APP, "atload.js": APP["atload.js"].replace("globalThis.LOAD", "true") },
    );
    await using isolate = await workspace.start("writer", { entry });
    assert.equal(isolate.booted?.type, "Ready", JSON.stringify(isolate.booted));
    await isolate.mutate("a:patch");
    const signedUp = await signUp(isolate, "a@example.com");
    assert.equal(Object(signedUp).ok, true, JSON.stringify(signedUp));
    const find = { kind: "user", email: "a@example.com" };
    const { answers } = await isolate.batch([
      call("_system/auth:findCredential", find, { origin: "system" }),
    ]);
    assert.equal(Object(answers[0]?.value)["hash"], HASH);
    assert.deepEqual((await isolate.mutate("a:report")).value, []);
  });
}

/** Names the functions and prototypes behind what app code gets that it could still change. */
const WALKER = `
  import * as server from "syncline/server";
  import * as zod from "zod";
  const { ownKeys, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  const done = new Set([server.anyApi, globalThis]);
  const language = [Object, Function, Array, Promise, Map, Set, WeakMap, WeakSet, Error, TypeError, RangeError, RegExp, String,
    Number, Boolean, Symbol, Date, BigInt, Uint8Array, URL, File, Blob, JSON, Math, async function () {}, function* () {}, async function* () {}];
  for (const one of language) {
    for (let object = one; object !== null; object = getPrototypeOf(object)) done.add(object);
    for (let object = one.prototype; object != null; object = getPrototypeOf(object)) done.add(object);
  }
  const open = [];
  const walk = (where, object, shared) => {
    if (object === null || (typeof object !== "object" && typeof object !== "function") || done.has(object)) return;
    done.add(object);
    // A property added to a function without own properties has no effect.
    const bare = (prototype) => ownKeys(prototype).length === 1;
    const matters = typeof object !== "function" || ownKeys(object).some((key) => {
      const { value } = getOwnPropertyDescriptor(object, key);
      return typeof value === "function" || (key === "prototype" && !bare(value) && !Object.isFrozen(value));
    });
    // The parts of zod are the app's own, and open for packages that make kinds of schemas with them.
    if (/^zod\.core\.|\.init(\.|$)/.test(where)) return;
    if (shared && matters && !Object.isFrozen(object) && !(where.endsWith(".prototype") && bare(object))) open.push(where);
    if (where.length > 200 || (where.endsWith(".prototype") && bare(object))) return;
    for (const key of ownKeys(object)) {
      const { value, get, set } = getOwnPropertyDescriptor(object, key) ?? {};
      // Functions that are an object's own were created for it.
      for (const part of [value, get, set]) walk(where + "." + String(key), part, shared && (typeof part === "function" || key === "prototype"));
    }
    walk(where + ".__proto__", getPrototypeOf(object), true);
  };
  const dbOf = (ctx) => { try { return ctx.db; } catch {} };
  export const walkAll = (ctx) => {
    open.length = 0;
    for (const [name, value] of Object.entries(server)) walk("server." + name, value, typeof value === "function");
    for (const value of [server.id("notes"), server.defineTable({}), server.httpRouter(), server.cronJobs(), server.defineSchema({}),
      server.httpAction(() => {}), new server.UserError("a", "b"), server.query(() => 1)]) walk("made", value, false);
    for (const [name, value] of Object.entries(zod)) walk("zod." + name, value, typeof value === "function");
    const { z } = zod;
    const values = [z.string().min(1), z.object({ a: z.int() }).strict(), z.union([z.null(), z.email()]), z.array(z.iso.date()).optional(),
      z.record(z.string(), z.unknown()), z.string().default("a"), z.discriminatedUnion("t", [z.object({ t: z.literal("a") })])];
    for (const value of values) walk("schema", value, false);
    walk("ZodError", z.string().safeParse(1).error, false);
    walk("config", z.config(), true);
    for (const [name, names] of Object.entries({ z, core: z.core, util: z.core.util, locales: z.locales, iso: z.iso })) {
      if (Object.isExtensible(names)) open.push("names of " + name);
    }
    walk("ctx", ctx, false);
    const db = dbOf(ctx);
    if (db) {
      const query = db.query("notes");
      walk("query", query, false);
      walk("iterator", query[Symbol.asyncIterator]?.(), false);
      query.withIndex("by_text", (q) => (walk("range", q, false), q));
      query.withSearchIndex("search", (q) => (walk("search", q, false), q.search("text", "a")));
      query.filter((q) => (walk("filter", q, false), q.eq(q.field("text"), "a")));
    }
    for (const fail of [() => db?.get(1), () => db?.query("none"), () => ctx.env.x.y, () => ctx.runQuery({}, {}), () => db?.insert("notes", 1), () => ctx.db]) {
      try { fail()?.catch?.((error) => walk("error", error, false)); } catch (error) { walk("error", error, false); }
    }
    const kinds = [...everyKind(z)];
    if (kinds.length < 100) open.push("kinds: " + kinds.length);
    for (const [name, made] of kinds) {
      for (const part of [made._zod.constr.prototype, getPrototypeOf(made._zod)]) {
        if (!Object.isFrozen(part)) open.push("kind " + name);
      }
    }
    return open;
  };
  // Most kinds are not used before. A kind that was frozen before its first schema throws here.
  const everyKind = function* (z) {
    const text = z.string();
    const object = z.object({ a: z.literal("a") });
    const withArguments = {
      array: [text], union: [[text]], xor: [[text]], discriminatedUnion: ["a", [object]], intersection: [text, text],
      tuple: [[text]], record: [text, text], partialRecord: [text, text], looseRecord: [text, text], map: [text, text],
      set: [text], enum: [["a"]], nativeEnum: [{ a: "a" }], literal: ["a"], optional: [text], exactOptional: [text],
      nullable: [text], nullish: [text], nonoptional: [text], success: [text], pipe: [text, text], keyof: [object],
      codec: [text, text, {}], invertCodec: [z.codec(text, text, {})], preprocess: [(value) => value, text],
      readonly: [text], templateLiteral: [["a"]], lazy: [() => text], promise: [text], transform: [(value) => value],
      catch: [text, "a"], prefault: [text, "a"], refine: [() => true], stringFormat: ["a", /a/], hash: ["sha256"],
      instanceof: [Object], json: [], check: [() => {}], regex: [/a/], toZod: [{}],
    };
    yield ["default", text.default("a")];
    for (const name of ["date", "datetime", "duration", "time"]) yield ["iso." + name, z.iso[name]()];
    for (const name of Object.keys(z)) {
      if (typeof z[name] !== "function" || !/^[a-z]/.test(name) || name === "setErrorMap") continue;
      try {
        const made = z[name](...withArguments[name] ?? []);
        if (made?._zod?.constr !== undefined) yield [name, made];
      } catch (error) {
        if (name in withArguments || /extensible|read only|redefine/.test(error.message)) open.push(name + ": " + error.message);
      }
    }
  };
`;

for (const role of ["writer", "reader", "runner"] as const) {
  Deno.test(`objects that app code in a ${role} gets from the server cannot be changed for later calls`, async () => {
    await using workspace = new Workspace({
      ...APP,
      "_walk.js": WALKER,
      "w.js":
        `import { untypedAction, untypedMutation, untypedQuery } from "syncline/server"; import { walkAll } from "./_walk.js";
        export const writer = untypedMutation(walkAll); export const reader = untypedQuery(walkAll); export const runner = untypedAction(walkAll);`,
    });
    if (role === "reader") await (await workspace.start("writer", { entry })).close();
    await using isolate = await workspace.start(role, { entry });
    const answer = role === "writer"
      ? await isolate.mutate("w:writer")
      : role === "reader"
      ? await isolate.query("w:reader")
      : await isolate.act("w:runner");
    assert.deepEqual(answer.value, [], JSON.stringify(answer.outcome));
  });
}
