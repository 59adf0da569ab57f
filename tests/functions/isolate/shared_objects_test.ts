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
    // A property added to a function without own properties has no effect. Kinds of zod get members later.
    const bare = (prototype) => !where.startsWith("zod.") && ownKeys(prototype).length === 1;
    // Shared by the schemas of a kind, or the schema's own: everyKind looks at these.
    if (where.endsWith("._zod.__proto__")) return;
    const matters = typeof object !== "function" || ownKeys(object).some((key) => {
      const { value } = getOwnPropertyDescriptor(object, key);
      return typeof value === "function" || (key === "prototype" && !bare(value) && !Object.isFrozen(value));
    });
    if (/\.init(\.|$)/.test(where)) return;
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
      const other = new made._zod.constr(made._zod.def);
      for (const [one, two] of [[made, other], [made._zod, other._zod]]) {
        for (let part = getPrototypeOf(one); part !== Object.prototype; part = getPrototypeOf(part)) {
          if (!Object.isFrozen(part) && Object.prototype.isPrototypeOf.call(part, two)) open.push("kind " + name);
        }
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

/** Each changes the app's zod for later calls, if it can. `found` returns what a later call sees of it. */
const ATTACKS = `
  import { z } from "zod";
  import * as zod from "zod";
  const forge = () => "forged";
  const tried = (attack) => { try { attack(); } catch {} };
  const kinds = Object.keys(z.core).map((name) => z.core[name]).concat(Object.keys(z).map((name) => z[name]))
    .filter((kind) => typeof kind === "function" && typeof kind.init === "function");
  // Both properties and accessors, because schemas are given some members by assignment.
  const spoil = (object) => {
    if (object === null || object === Object.prototype || object === Error.prototype) return;
    for (const key of ["secret", "safeParse", "parse", "run", "def", "toString", "format", "flatten", "values", "optin", "issues", "min", "refine"]) {
      tried(() => Object.defineProperty(object, key, { configurable: true, enumerable: true, get: () => forge, set: () => {} }));
      tried(() => { object[key] = forge; });
    }
  };
  const spoilAll = (made) => {
    for (let object = Object.getPrototypeOf(made); object !== null; object = Object.getPrototypeOf(object)) spoil(object);
    for (let object = Object.getPrototypeOf(made._zod); object !== null; object = Object.getPrototypeOf(object)) spoil(object);
  };
  const makers = {
    map: () => z.map(z.string(), z.boolean()), set: () => z.set(z.date()), tuple: () => z.tuple([z.nan()]), email: () => z.email(),
    record: () => z.record(z.string(), z.bigint()), lazy: () => z.lazy(() => z.symbol()), enum: () => z.enum(["a"]), file: () => z.file(),
    string: () => z.string().min(2), number: () => z.int(), object: () => z.strictObject({ a: z.null().optional() }), date: () => z.iso.date(),
    template: () => z.templateLiteral(["a", z.number()]), core: () => new z.core.$ZodMap({ type: "map", keyType: z.any(), valueType: z.any() }),
  };
  export const attacks = {
    config: () => {
      const { postProcessor, onKind } = globalThis.__zod_globalConfig;
      for (const kind of kinds) {
        for (const hook of [postProcessor, onKind, globalThis.__zod_onKind]) {
          tried(() => hook({ _zod: { constr: kind, traits: new Set() } }));
          let reads = 0;
          tried(() => hook({ _zod: { get constr() { return reads++ === 0 ? kind : class {}; }, traits: new Set() } }));
        }
      }
      tried(() => { globalThis.__zod_onKind = (...objects) => objects.forEach(spoil); });
      tried(() => { z.config().localeError = forge; });
      for (const value of Object.values(z.config())) for (const key of Object.keys(value)) tried(() => { value[key] = forge; });
    },
    prototypes: () => {
      for (const kind of kinds) {
        spoil(kind.prototype);
        spoil(kind);
        tried(() => { kind.prototype = { secret: forge, safeParse: forge }; });
      }
    },
    // Gets the prototypes without a complete schema.
    initializers: () => {
      for (const kind of kinds) {
        for (const one of [{}, Object.create(kind.prototype), { _zod: { constr: kind, traits: new Set(), def: {} } }]) {
          tried(() => kind.init(one, {}));
          tried(() => z.ZodType.init(one, {}));
          tried(() => z.ZodRealError.init(one, []));
          tried(() => spoilAll(one));
        }
      }
    },
    // Gets a schema while it is made.
    subclasses: () => {
      for (const kind of kinds) {
        tried(() => new (class extends kind { set def(value) { spoilAll(this); } set type(value) { spoilAll(this); throw 1; } })({ type: "a" }));
        tried(() => new kind({ get type() { throw 1; }, get checks() { throw 1; } }));
        tried(() => spoilAll(new kind([])));
      }
    },
    schemas: () => {
      for (const make of Object.values(makers)) tried(() => spoilAll(make()));
      tried(() => spoilAll(z.string().safeParse(1).error));
      tried(() => z.string().parse(1));
      for (const check of [z.minLength(1), z.lt(1), z.regex(/a/), z.overwrite(String)]) tried(() => spoilAll(check));
    },
    values: () => {
      tried(() => z.core.util.propertyKeyTypes.add("object"));
      tried(() => Set.prototype.add.call(z.core.util.propertyKeyTypes, "object"));
      tried(() => { z.core.util.NUMBER_FORMAT_RANGES.safeint[0] = 5; });
      tried(() => { z.core.util.allowsEval._value = false; });
      tried(() => Object.defineProperty(Object.getPrototypeOf(z.core.util.allowsEval), "value", { get: forge }));
      for (const regex of [...Object.values(z.core.regexes), z.email()._zod.def.pattern]) {
        tried(() => { regex.test = () => true; });
        tried(() => { regex.exec = () => ["a"]; });
        tried(() => RegExp.prototype.compile.call(regex, ".*"));
      }
      for (const space of [zod, z, z.core, z.core.util, z.locales, z.iso]) {
        for (const key of Object.keys(space)) {
          tried(() => { space[key].secret = forge; });
          tried(() => Object.defineProperty(space, key, { value: forge }));
          tried(() => { delete space[key]; });
        }
      }
      tried(() => { z.globalRegistry.get = forge; });
    },
  };
  export const found = () => {
    const results = {};
    const note = (name, get) => { try { results[name] = String(get()); } catch (error) { results[name] = "throws " + error.message; } };
    for (const [name, make] of Object.entries(makers)) {
      note(name, () => make()._zod.traits.size);
      note(name + " secret", () => ["secret" in make(), "secret" in make()._zod, "secret" in make()._zod.constr]);
      const values = ["a", new Map([["a", true]]), new Map([[1, 2]]), new Set(["a"]), [NaN], 3, {}, { a: null }, { [Symbol("a")]: 1n }, "2020-01-01", "a@b.cc", "a1"];
      values.forEach((value, at) => note(name + " of value " + at, () => JSON.stringify(z.core.safeParse(make(), value))));
      if (name !== "core") {
        note(name + " members", () => [make().safeParse(1).success, make().optional().safeParse(undefined).success, make().refine(() => false).safeParse("a").success]);
        note(name + " schema", () => JSON.stringify(z.toJSONSchema(make(), { unrepresentable: "any" })));
      }
    }
    note("error", () => { const { error } = z.map(z.string(), z.any()).safeParse(1); return ["secret" in error, error, JSON.stringify([error.format(), error.flatten()])]; });
    note("new error", () => JSON.stringify(new z.ZodError([]).flatten()) + ("secret" in new z.ZodError([])));
    note("checks", () => ["secret" in z.minLength(1), z.string().check(z.minLength(3)).safeParse("ab").success]);
    note("names", () => [zod, z, z.core, z.core.util, z.iso].map((space) => Object.keys(space).filter((key) => Object(space[key]).secret !== undefined)));
    note("description", () => z.string().describe("b").description);
    return results;
  };
`;

Deno.test("changes of a call to the app's zod are not visible to later calls, for used and unused kinds", async () => {
  await using workspace = new Workspace({
    "_attacks.js": ATTACKS,
    "z.js": `import { untypedAction } from "syncline/server"; import { attacks, found } from "./_attacks.js";
      export const attack = untypedAction((ctx, { name }) => attacks[name]());
      export const names = untypedAction(() => Object.keys(attacks));
      export const look = untypedAction(() => found());`,
  });
  await using untouched = await workspace.start("runner", { entry });
  const expected = (await untouched.act("z:look")).value as Record<string, string>;
  assert.equal(expected["map of value 1"], '{"success":true,"data":{}}');
  assert.match(expected["error"] ?? "", /^false,.*Invalid input: expected map/s);
  assert.deepEqual(Object.values(expected).filter((value) => value.startsWith("throws")), []);
  await using isolate = await workspace.start("runner", { entry });
  for (const name of (await isolate.act("z:names")).value as string[]) {
    const { outcome } = await isolate.act("z:attack", { name });
    assert.equal(Object(outcome).ok, true, JSON.stringify(outcome));
  }
  assert.deepEqual((await isolate.act("z:look")).value, expected);
});
