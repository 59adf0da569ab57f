/** Full-text search and vector search. */
import assert from "node:assert/strict";
import { behaviours, type Ctx, query, withFunctions } from "./support.ts";

async function texts(ctx: Ctx, ...bodies: string[]): Promise<void> {
  for (const body of bodies) await ctx.db.insert("texts", { body });
}

async function search(ctx: Ctx, words: string): Promise<string[]> {
  const rows = await ctx.db.query("texts").withSearchIndex("by_body", (q) => q.search("body", words))
    .collect();
  return rows.map(({ body }) => body);
}

behaviours("search", {
  "a word finds the texts that have it": async (t) => {
    await t.run(async (ctx) => {
      await texts(ctx, "red apple", "green pear");
      assert.deepEqual(await search(ctx, "apple"), ["red apple"]);
    });
  },
  "upper and lower case are the same": async (t) => {
    await t.run(async (ctx) => {
      await texts(ctx, "Red APPLE");
      assert.deepEqual(await search(ctx, "apple rEd"), ["Red APPLE"]);
    });
  },
  "the last word may be the beginning of one": async (t) => {
    await t.run(async (ctx) => {
      await texts(ctx, "red apple", "red pear");
      assert.deepEqual(await search(ctx, "app"), ["red apple"]);
    });
  },
  "only the last word may be": async (t) => {
    await t.run(async (ctx) => {
      await texts(ctx, "apple pie");
      assert.deepEqual(await search(ctx, "app zebra"), []);
    });
  },
  "more words in common come first": async (t) => {
    await t.run(async (ctx) => {
      await texts(ctx, "one apple among many other fruits here", "apple pie", "nothing");
      assert.equal((await search(ctx, "apple pie"))[0], "apple pie");
    });
  },
  "a text with a rarer word comes first": async (t) => {
    await t.run(async (ctx) => {
      await texts(
        ctx,
        "the cat sat",
        "the dog sat",
        "the cat and the dog",
        "a bird flew far away over the sea",
      );
      assert.equal((await search(ctx, "the bird"))[0], "a bird flew far away over the sea");
    });
  },
  "accents do not matter": async (t) => {
    await t.run(async (ctx) => {
      await texts(ctx, "Crème brûlée");
      assert.deepEqual(await search(ctx, "creme"), ["Crème brûlée"]);
    });
  },
  "scripts other than Latin are found": async (t) => {
    await t.run(async (ctx) => {
      await texts(ctx, "Привет мир", "γειά σου κόσμε");
      assert.deepEqual(await search(ctx, "привет"), ["Привет мир"]);
    });
  },
  "punctuation and operators in the words are nothing special": async (t) => {
    await t.run(async (ctx) => {
      await texts(ctx, "a quote and an asterisk");
      for (
        const words of ['quote"', "quote*", "(quote", "quote AND", "-quote", "body:quote", "NEAR(quote)"]
      ) {
        assert.deepEqual(await search(ctx, words), ["a quote and an asterisk"], words);
      }
    });
  },
  "no words find nothing": async (t) => {
    await t.run(async (ctx) => {
      await texts(ctx, "apple");
      for (const words of ["", "   ", "!!!"]) assert.deepEqual(await search(ctx, words), []);
    });
  },
  "filter fields narrow the search": async (t) => {
    await t.run(async ({ db }) => {
      await db.insert("texts", { body: "apple", lang: "en", stars: 1 });
      await db.insert("texts", { body: "apple", lang: "de", stars: 1 });
      await db.insert("texts", { body: "apple", lang: "de", stars: 2 });
      const found = await db.query("texts").withSearchIndex(
        "by_body",
        (q) => q.search("body", "apple").eq("lang", "de").eq("stars", 2),
      ).collect();
      assert.deepEqual(found.map(({ lang, stars }) => [lang, stars]), [["de", 2]]);
    });
  },
  "eq undefined narrows to texts without the field": async (t) => {
    await t.run(async ({ db }) => {
      await db.insert("texts", { body: "apple", lang: "en" });
      await db.insert("texts", { body: "apple" });
      const found = await db.query("texts").withSearchIndex(
        "by_body",
        (q) => q.search("body", "apple").eq("lang", undefined),
      ).collect();
      assert.equal(found.length, 1);
    });
  },
  "a filter() applies to what was found": async (t) => {
    await t.run(async (ctx) => {
      await texts(ctx, "red apple", "green apple");
      const found = await ctx.db.query("texts").withSearchIndex("by_body", (q) => q.search("body", "apple"))
        .filter((row) => row.body.startsWith("red")).collect();
      assert.equal(found.length, 1);
    });
  },
  "writes of the same mutation are found": async (t) => {
    await t.run(async (ctx) => {
      const row = await ctx.db.insert("texts", { body: "apple" });
      assert.equal((await search(ctx, "apple")).length, 1);
      await ctx.db.patch(row, { body: "pear" });
      assert.deepEqual([await search(ctx, "apple"), await search(ctx, "pear")], [[], ["pear"]]);
      await ctx.db.delete(row);
      assert.deepEqual(await search(ctx, "pear"), []);
    });
  },
  "what is rolled back is not found": async (t) => {
    await assert.rejects(
      t.run(async (ctx) => {
        await texts(ctx, "apple");
        await search(ctx, "apple");
        throw new Error("stop");
      }),
    );
    assert.deepEqual(await t.run((ctx) => search(ctx, "apple")), []);
  },
  "a live search follows the writes": withFunctions({
    find: query({
      handler: async (ctx) =>
        (await ctx.db.query("texts").withSearchIndex("by_body", (q) => q.search("body", "apple")).collect())
          .length,
    }),
  }, async (t) => {
    using found = t.subscribe("app:find");
    assert.equal(await found.next(), 0);
    await t.run((ctx) => texts(ctx, "an apple"));
    assert.equal(await found.next(), 1);
  }),
  "the wrong field is refused": async (t) => {
    await assert.rejects(
      t.run(({ db }) =>
        db.query("texts").withSearchIndex("by_body", (q) => q.search("lang" as never, "x")).collect()
      ),
      /searches in "body", not in "lang"/,
    );
  },
  "a search for something else than a string is refused": async (t) => {
    await assert.rejects(
      t.run(({ db }) =>
        db.query("texts").withSearchIndex("by_body", (q) => q.search("body", 5 as never)).collect()
      ),
      /Search index "by_body": the search query must be a string/,
    );
  },
  "a filter field that the index does not have is refused": async (t) => {
    await assert.rejects(
      t.run(({ db }) =>
        db.query("texts").withSearchIndex(
          "by_body",
          (q) => q.search("body", "x").eq("size" as never, 1 as never),
        ).collect()
      ),
      /can filter by lang, stars, not by "size"/,
    );
  },
  "an order of one's own is refused": async (t) => {
    await assert.rejects(
      t.run((ctx) =>
        (ctx.db.query("texts").withSearchIndex("by_body", (q) => q.search("body", "x")) as never as {
          order(order: string): never;
        }).order("asc")
      ),
      /A search has its own order/,
    );
  },
});

async function vectors(ctx: Ctx): Promise<void> {
  for (
    const [kind, at] of [["x", [1, 0, 0]], ["y", [0, 1, 0]], ["xy", [1, 1, 0]], ["-x", [-1, 0, 0]]] as const
  ) {
    await ctx.db.insert("vectors", { kind, at: [...at] });
  }
  await ctx.db.insert("vectors", { kind: "none" });
}

async function kinds(ctx: Ctx, found: readonly { _id: string }[]): Promise<string> {
  const docs = await Promise.all(found.map(({ _id }) => ctx.db.get(_id as never)));
  return docs.map((doc) => (doc as { kind?: string } | null)?.kind).join(" ");
}

behaviours("vectors", {
  "the nearest by angle come first, with their cosine": async (t) => {
    await t.run(async (ctx) => {
      await vectors(ctx);
      const found = await ctx.db.vectorSearch("vectors", "by_at", { vector: [1, 0.1, 0] });
      assert.equal(await kinds(ctx, found), "x xy y -x");
      assert(Math.abs((found[0]?._score ?? 0) - 0.995) < 0.001);
    });
  },
  "length does not matter": async (t) => {
    await t.run(async (ctx) => {
      await vectors(ctx);
      const found = await ctx.db.vectorSearch("vectors", "by_at", { vector: [0, 1000, 0], limit: 1 });
      assert.equal(await kinds(ctx, found), "y");
      assert(Math.abs((found[0]?._score ?? 0) - 1) < 1e-6);
    });
  },
  "limit bounds the results": async (t) => {
    await t.run(async (ctx) => {
      await vectors(ctx);
      assert.equal(
        (await ctx.db.vectorSearch("vectors", "by_at", { vector: [1, 1, 1], limit: 2 })).length,
        2,
      );
    });
  },
  "documents without the field are not found": async (t) => {
    await t.run(async (ctx) => {
      await vectors(ctx);
      assert.equal(
        (await ctx.db.vectorSearch("vectors", "by_at", { vector: [1, 1, 1], limit: 100 })).length,
        4,
      );
    });
  },
  "filters narrow before the limit": async (t) => {
    await t.run(async (ctx) => {
      await vectors(ctx);
      const one = await ctx.db.vectorSearch("vectors", "by_at", {
        vector: [1, 0, 0],
        limit: 1,
        filter: (q) => q.eq("kind", "-x"),
      });
      const two = await ctx.db.vectorSearch("vectors", "by_at", {
        vector: [1, 0, 0],
        filter: (q) => q.or(q.eq("kind", "y"), q.eq("kind", "xy")),
      });
      assert.deepEqual([await kinds(ctx, one), await kinds(ctx, two)], ["-x", "xy y"]);
    });
  },
  "writes of the same mutation are found": async (t) => {
    await t.run(async (ctx) => {
      const row = await ctx.db.insert("vectors", { kind: "z", at: [0, 0, 1] });
      const nearest = () => ctx.db.vectorSearch("vectors", "by_at", { vector: [0, 0, 1], limit: 1 });
      assert.equal((await nearest())[0]?._id, row);
      await ctx.db.delete(row);
      assert.deepEqual(await nearest(), []);
    });
  },
  "a live vector search follows the writes": withFunctions({
    nearest: query({
      handler: async (ctx) => (await ctx.db.vectorSearch("vectors", "by_at", { vector: [0, 0, 1] })).length,
    }),
  }, async (t) => {
    using found = t.subscribe("app:nearest");
    assert.equal(await found.next(), 0);
    await t.run(({ db }) => db.insert("vectors", { at: [0, 0, 1] }));
    assert.equal(await found.next(), 1);
  }),
  "a vector of another length is refused, in a search and in a document": async (t) => {
    await assert.rejects(
      t.run(({ db }) => db.vectorSearch("vectors", "by_at", { vector: [1, 2] })),
      /3/,
    );
    await assert.rejects(t.run(({ db }) => db.insert("vectors", { at: [1, 2] })), /at.*3|3.*at/);
  },
  "too many results are refused with the limit": async (t) => {
    await assert.rejects(
      t.run(({ db }) => db.vectorSearch("vectors", "by_at", { vector: [1, 0, 0], limit: 257 })),
      /256/,
    );
  },
  "an unknown index is refused by name": async (t) => {
    await assert.rejects(
      t.run(({ db }) => db.vectorSearch("vectors", "by_it" as never, { vector: [1, 0, 0] })),
      /Table "vectors" has no vector index "by_it"; its vector indexes are by_at/,
    );
  },
});
