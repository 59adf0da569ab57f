/** Clock and randomness in queries and mutations: they are frozen, repeatable, and detected. */
import assert from "node:assert/strict";
import { Workspace } from "./support.ts";

const app = {
  "clock.ts": `
    import { untypedMutation, untypedQuery } from "syncline/server";
    const spin = () => { let sum = 0; for (let i = 0; i < 3e7; i++) sum += Math.sqrt(i); return sum; };
    const times = () => [Date.now(), new Date().getTime(), performance.now(), Date.parse(Date())];
    export const still = untypedQuery(() => { const before = times(); spin(); return [before, times()]; });
    export const now = untypedQuery(() => Date.now());
    export const plain = untypedQuery(() => new Date(5).toISOString());
    export const dates = untypedQuery(() => [
      new Date() instanceof Date, Object.prototype.toString.call(new Date()), new Date(2020, 1, 2).getMonth(),
      Date.UTC(2020, 0, 1), new Date(Date.now()).constructor === Date, Date.name, Date.length,
      new (class extends Date { half() { return this.getTime() / 2; } })(8).half(),
    ]);
    export const random = untypedQuery((_ctx, { salt }) => [Math.random(), Math.random(), salt]);
    export const uuid = untypedQuery(() => crypto.randomUUID());
    export const temporal = untypedQuery(() => typeof Temporal === "undefined" ? "refused" : Temporal.Now.instant().toString());
    export const chance = untypedMutation(() => [Math.random(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(4))]]);
    export const bytes = untypedQuery(async () => {
      const { randomBytes } = await import("node:crypto");
      return randomBytes(4).length;
    });
    const formats = () => {
      const format = new Intl.DateTimeFormat("en", { dateStyle: "full", timeStyle: "full" });
      const parts = new Intl.DateTimeFormat("en", { second: "numeric", fractionalSecondDigits: 3 }).formatToParts();
      return [format.format(), format.format(new Date()), parts.map(({ value }) => value).join("")];
    };
    export const formatted = untypedQuery(() => { const before = formats(); spin(); return [before, formats()]; });
    export const formatOf = untypedQuery(() => new Intl.DateTimeFormat("en", { timeZone: "UTC" }).format(new Date(0)));
    export const quiet = untypedQuery(() => Math.max(1, 2));
  `,
};

Deno.test("clock and randomness of queries are frozen, repeatable and detected", async (t) => {
  await using workspace = new Workspace(app);
  await using writer = await workspace.start("writer");
  await using reader = await workspace.start("reader");

  await t.step("every clock is frozen while a query runs, at about the real time", async () => {
    const started = Date.now();
    const { value, details } = await reader.query("clock:still");
    const [before, after] = value as [number[], number[]];
    assert.deepEqual(before, after);
    assert.ok(Math.abs((before[0] ?? 0) - started) < 5000);
    assert.equal(before[0], before[1]);
    assert.equal(details.nondeterministic, true);
  });

  await t.step("dates formatted without a date are those of the same clock", async () => {
    const { value, details } = await reader.query("clock:formatted");
    const [before, after] = value as [string[], string[]];
    assert.deepEqual(before, after);
    assert.equal(before[0], before[1]);
    assert.equal(details.nondeterministic, true);
    const given = await reader.query("clock:formatOf");
    assert.deepEqual([given.value, given.details.nondeterministic], ["1/1/1970", false]);
  });

  await t.step("the clock advances from one query to the next", async () => {
    const first = (await reader.query("clock:now")).value as number;
    await reader.query("clock:still");
    assert.ok(((await reader.query("clock:now")).value as number) > first);
  });

  await t.step("dates created from values are ordinary and not recorded", async () => {
    const plain = await reader.query("clock:plain");
    assert.deepEqual([plain.value, plain.details.nondeterministic], ["1970-01-01T00:00:00.005Z", false]);
    assert.equal((await reader.query("clock:quiet")).details.nondeterministic, false);
    assert.deepEqual((await reader.query("clock:dates")).value, [
      true,
      "[object Date]",
      1,
      1577836800000,
      true,
      "Date",
      7,
      4,
    ]);
  });

  await t.step("a repeated query gets the same random numbers, another query gets others", async () => {
    const [first, again, other] = [
      await reader.query("clock:random", { salt: 1 }),
      await reader.query("clock:random", { salt: 1 }),
      await reader.query("clock:random", { salt: 2 }),
    ];
    assert.deepEqual(first.value, again.value);
    assert.notDeepEqual((first.value as number[])[0], (other.value as number[])[0]);
    assert.equal(first.details.nondeterministic, true);
    for (const number of (first.value as number[]).slice(0, 2)) assert.ok(number >= 0 && number < 1);
  });

  await t.step("real randomness is recorded too, and mutations have it", async () => {
    assert.equal((await reader.query("clock:uuid")).details.nondeterministic, true);
    assert.equal((await reader.query("clock:bytes")).details.nondeterministic, true);
    const [one, two] = [
      (await writer.mutate("clock:chance")).value,
      (await writer.mutate("clock:chance")).value,
    ];
    assert.notDeepEqual(one, two);
  });

  await t.step("clocks that cannot be stopped are closed", async () => {
    const { outcome, value } = await reader.query("clock:temporal");
    assert.ok(
      value === "refused" || (!outcome.ok && /Temporal\.Now is not available/.test(outcome.error.message)),
    );
  });
});
