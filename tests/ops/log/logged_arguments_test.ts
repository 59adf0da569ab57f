/** Arguments in the execution log: off by default, bounded, and without what schemas redact. */
import assert from "node:assert/strict";
import { z } from "zod";
import type { JsonSchema } from "../../../mod/functions/api/service.ts";
import { logLimits } from "../../../mod/ops/limits.ts";
import { LoggedArguments, redactedJson, redactionOf } from "../../../mod/ops/log/logged_arguments.ts";
import { startTestServer } from "../../auth/server/test_server.ts";
import { until } from "../../support/waiting.ts";

const secret = z.string().meta({ redact: true });
const schemaOf = (schema: z.ZodType) => z.toJSONSchema(schema, { io: "input", cycles: "ref" }) as JsonSchema;
const logged = (schema: z.ZodType, value: unknown) => redactedJson(value, redactionOf(schemaOf(schema)));

Deno.test("EL20 marked values are omitted wherever they are, and others are logged", () => {
  const card = z.object({ number: secret, name: z.string() });
  const schema = z.object({
    plain: z.string(),
    pin: secret.optional(),
    card,
    cards: z.array(card),
    byName: z.record(z.string(), card),
    byPattern: z.looseRecord(z.string().regex(/^card/), secret),
    either: z.union([z.object({ token: secret }), z.object({ token: z.number() }), z.string()]),
    pair: z.tuple([z.string(), secret]),
    all: card.meta({ redact: true }),
  });
  const one = { number: "4111", name: "Ada" };
  const text = logged(schema, {
    plain: "text",
    pin: "1234",
    card: one,
    cards: [one],
    byName: { a: one },
    byPattern: { card1: "4111" },
    either: { token: "abc" },
    pair: ["a", "b"],
    all: one,
  });
  const left = { number: "(redacted)", name: "Ada" };
  assert.deepEqual(JSON.parse(text), {
    plain: "text",
    pin: "(redacted)",
    card: left,
    cards: [left],
    byName: { a: left },
    byPattern: { card1: "(redacted)" },
    either: { token: "(redacted)" },
    pair: ["(redacted)", "(redacted)"],
    all: "(redacted)",
  });
});

Deno.test("EL20 recursive schemas are omitted from their second level on", () => {
  interface Node {
    readonly secret: string;
    readonly children: readonly Node[];
  }
  const node: z.ZodType<Node> = z.lazy(() => z.object({ secret, children: z.array(node) }));
  const leaf = { secret: "deep", children: [] };
  const text = logged(z.object({ tree: node }), { tree: { secret: "top", children: [leaf] } });
  assert.doesNotMatch(text, /top|deep/);
});

Deno.test("EL20 strings instead of marked fields and unknown definitions are omitted", () => {
  const card = z.preprocess((text) => JSON.parse(String(text)), z.object({ number: secret }));
  const text = logged(z.object({ card, title: z.string() }), { card: '{"number":"4111"}', title: "Lamp" });
  assert.deepEqual(JSON.parse(text), { card: "(redacted)", title: "Lamp" });
  assert.equal(redactionOf({ $ref: "#/$defs/unknown" }), true);
});

Deno.test("EL20 nothing is logged before the schemas of the served version are known", async () => {
  let served = "one";
  const answers: PromiseWithResolvers<Record<string, JsonSchema>>[] = [];
  const calls = {
    query() {
      const answer = Promise.withResolvers<Record<string, JsonSchema>>();
      answers.push(answer);
      return answer.promise;
    },
  };
  const loggedArgs = new LoggedArguments(() => {});
  loggedArgs.connect({ version: () => served, calls: calls as never });
  loggedArgs.enable(true);
  const schemas = { "notes:add": schemaOf(z.object({ title: z.string() })) };
  const outcome = { ok: true, value: "null", logLines: [] } as const;
  const call = { udfPath: "notes:add", args: { title: "Lamp" } } as never;
  const of = () => loggedArgs.of(call, outcome);
  assert.equal(of(), null);
  // The answer of a version that is no longer served is ignored.
  served = "two";
  answers[0]?.resolve(schemas);
  await answers[0]?.promise;
  assert.equal(of(), null);
  loggedArgs.reload();
  answers[1]?.resolve(schemas);
  await until(() => of() === '{"title":"Lamp"}');
  served = "three";
  assert.equal(of(), null);
});

Deno.test("EL20 long arguments are cut, and little of them is read", () => {
  let read = 0;
  const items = new Proxy(Array.from({ length: 1_000_000 }, () => "some text"), {
    get(target, name) {
      read++;
      return Reflect.get(target, name) as unknown;
    },
  });
  const text = redactedJson({ items, text: "x".repeat(10_000_000) }, null);
  assert.equal(text.length, logLimits.argsCharsMax);
  assert.ok(text.endsWith("…"));
  assert.ok(read < 2_000, `${read} reads`);
  assert.equal(
    redactedJson({ a: undefined, b: null, c: 1.5, d: [true] }, null),
    '{"a":null,"b":null,"c":1.5,"d":[true]}',
  );
});

Deno.test("EL20 arguments are logged where the setting allows it", async () => {
  const functions = {
    "notes.ts": `import { untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const find = untypedQuery({
  args: { title: z.string(), code: z.string().meta({ redact: true }) }, handler: () => null });
export const add = untypedMutation({ args: { title: z.string() }, handler: () => { throw new Error("full"); } });
export const any = untypedQuery({ handler: () => null });`,
  };
  const executionLog = { keepMs: 86_400_000, bytesMax: 100_000_000 };
  for (const isOn of [false, true]) {
    await using server = await startTestServer({
      functions,
      config: { executionLog: { ...executionLog, ...(isOn && { args: true }) } },
    });
    const token = new URL(server.setupLink ?? "").hash.split("=")[1];
    const account = { token, email: "root@example.com", password: "correct horse battery" };
    const bearer = (await server.post("/api/auth/admin/setup", account)).body.accessToken;
    const runs = async (filter: string) => {
      const response = await fetch(`${server.url}/api/admin/logs?${filter}`, {
        headers: { Authorization: `Bearer ${bearer}` },
      });
      return (await response.json()).runs as { args: string | null; logLines: string[]; outcome: string }[];
    };
    const call = (kind: string, path: string, args: object) => server.post(`/api/${kind}`, { path, args });
    const last = async () => {
      await call("query", "notes:find", { title: "Lamp", code: "4711" });
      return (await runs("function=notes:find&limit=1"))[0];
    };
    let found: Awaited<ReturnType<typeof last>>;
    await until(async () => {
      found = await last();
      return found !== undefined && (!isOn || typeof found.args === "string");
    });
    assert.equal(found?.args, isOn ? '{"title":"Lamp","code":"(redacted)"}' : null);
    assert.deepEqual(found?.logLines, []);
    await call("mutation", "notes:add", { title: "Desk" });
    await call("query", "notes:any", { title: "Unknown" });
    await call("query", "notes:find", { title: 4711, code: 4711 });
    // Under load, a page can end before the newest runs are stored.
    await until(async () => {
      const [newest] = await runs("function=notes:find&limit=1");
      return newest !== undefined && newest.outcome !== found?.outcome;
    });
    assert.equal((await runs("function=notes:add"))[0]?.args, isOn ? '{"title":"Desk"}' : null);
    assert.equal((await runs("function=notes:any"))[0]?.args, null, "without a schema");
    assert.equal((await runs("function=notes:find&limit=1"))[0]?.args, null, "did not match the schema");
    assert.equal((await runs("text=Desk")).length, isOn ? 1 : 0);
    const service = await runs("system=true");
    assert.ok(service.length > 0 && service.every(({ args }) => args === null));
  }
});
