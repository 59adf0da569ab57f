/** `ctx.db.aggregate`: results, own writes, and the message for each misuse. */
import assert from "node:assert/strict";
import { z } from "zod";
import { type DataModelOf, defineSchema, defineTable, type Id } from "../../../mod/functions/api/mod.ts";
import { TestDatabase } from "./database_support.ts";

const schema = defineSchema({
  scores: defineTable({ game: z.string(), points: z.number().optional(), bonus: z.number().optional() })
    .aggregate("by_game", { by: ["game", "points"], sum: ["points"] }),
  plain: defineTable({ name: z.string() }),
});

const open = () => new TestDatabase<DataModelOf<typeof schema>>(schema);

Deno.test("totals, positions and documents of a range, also of a mutation's own writes", async () => {
  using database = open();
  const ids: Id<"scores">[] = [];
  await database.write(async (db) => {
    const chess = () => db.aggregate("scores", "by_game", (q) => q.eq("game", "chess"));
    assert.deepEqual([await chess().count(), await chess().sum("points"), await chess().min("points")], [
      0,
      0,
      null,
    ]);
    for (const points of [5, 9, 7]) ids.push(await db.insert("scores", { game: "chess", points }));
    await db.insert("scores", { game: "chess" });
    await db.insert("scores", { game: "go", points: 1 });
    assert.deepEqual([await chess().count(), await chess().sum("points")], [4, 21]);
  });
  await database.read(async (db) => {
    const chess = db.aggregate("scores", "by_game", (q) => q.eq("game", "chess"));
    assert.deepEqual([await chess.min("points"), await chess.max("points")], [5, 9]);
    assert.deepEqual([(await chess.at(1))?.points, (await chess.at(-1))?.points, await chess.at(4)], [
      5,
      9,
      null,
    ]);
    assert.deepEqual(await Promise.all(ids.map((id) => chess.indexOf(id))), [1, 3, 2]);
    const above = db.aggregate("scores", "by_game", (q) => q.eq("game", "chess").gt("points", 5));
    assert.equal(await above.count(), 2);
    assert.equal(await db.aggregate("scores", "by_game").count(), 5);
  });
});

Deno.test("a sum beyond the range of numbers is an error, however its parts cancel out", async () => {
  using database = open();
  const games = Array.from({ length: 50 }, (_, n) => `game ${n + 10}`);
  await database.write(async (db) => {
    // Sums of neighbouring games exceed the range in opposite directions.
    for (const [at, game] of games.entries()) {
      for (let n = 0; n < 40; n++) await db.insert("scores", { game, points: at % 2 === 0 ? 1e308 : -1e308 });
    }
    for (let n = 0; n < 4_000; n++) await db.insert("scores", { game: "small", points: 1 });
  });
  await database.read(async (db) => {
    const of = (game: string) => db.aggregate("scores", "by_game", (q) => q.eq("game", game));
    const error = {
      name: "RangeError",
      message: /^The sum of "points" in aggregate "by_game" of table "scores" exceeds the range of numbers: /,
    };
    await assert.rejects(db.aggregate("scores", "by_game").sum("points"), error);
    for (const game of games) {
      await assert.rejects(of(game).sum("points"), error);
      const others = db.aggregate("scores", "by_game", (q) => q.gte("game", game));
      await assert.rejects(others.sum("points"), error);
    }
    assert.deepEqual([await of("small").sum("points"), await of("game 10").max("points")], [4_000, 1e308]);
  });
});

Deno.test("each misuse has a message with advice", async () => {
  using database = open();
  await database.read(async (db) => {
    const loose = db as unknown as {
      aggregate(
        table: string,
        name: string,
        range?: (q: { eq(field: string, value: unknown): unknown }) => unknown,
      ):
        & Record<"sum" | "indexOf" | "at", (argument: unknown) => Promise<unknown>>
        & object;
    };
    assert.throws(
      () => loose.aggregate("scores", "by_x"),
      /has no aggregate "by_x"; its aggregates are by_game\. Add it in schema\.ts: \.aggregate\("by_x", /,
    );
    assert.throws(() => loose.aggregate("plain", "by_x"), /its aggregates are none/);
    assert.throws(
      () => loose.aggregate("scores", "by_game", (q) => q.eq("points", 1)),
      /condition on "game" is expected/,
    );
    assert.throws(() => loose.aggregate("scores", "by_game", () => null), /must return the q it was given/);
    const all = loose.aggregate("scores", "by_game");
    await assert.rejects(
      all.sum("bonus"),
      /Aggregate "by_game" of table "scores" has no totals of "bonus"; it sums points\. Add it to/,
    );
    await assert.rejects(all.at(0.5), /at\(\) needs a whole number, not 0\.5/);
    await assert.rejects(all.indexOf(3), /indexOf\(\) needs the id of a document, not number/);
  });
  const table = () => defineTable({ game: z.string() });
  assert.throws(
    () => defineSchema({ t: table().aggregate("by", { by: ["gmae" as "game"] }) }),
    /Aggregate "by" of table "t" names the unknown field "gmae"/,
  );
  assert.throws(
    () => table().index("one", ["game"]).aggregate("one", { by: ["game"] }),
    /Duplicate index "one"/,
  );
});
