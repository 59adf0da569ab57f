/** The hooks in a real browser, in strict mode, against a real server. */
import assert from "node:assert/strict";
import { renderToString } from "react-dom/server";
import { FunctionError, SynclineHttpClient } from "syncline/client";
import { preloadQuery, SynclineProvider } from "syncline/react";
import { api } from "./page/api.ts";
import { Rows } from "./page/hydrated.tsx";
import { withHooksPage } from "./support/hooks_page.ts";
import { chromium, needs } from "../../support/services.ts";

/** Seeds of the random lists, including seeds that once failed. */
const SEEDS = [1, 2, 3];

Deno.test(needs(chromium, "hooks in a browser"), async (t) => {
  await withHooksPage(async ({ url, run }) => {
    const http = new SynclineHttpClient(url);
    const put = (list: string, rank: number, text: string) =>
      http.mutation(api.rows.put, { list, rank, text });

    await t.step("of 1,000 hooks on a page, a change renders only its component", async () => {
      await http.mutation(api.rows.fill, {
        list: "counted",
        ranks: Array.from({ length: 1000 }, (_, i) => i),
      });
      const result = await run("counted", { count: 1000, change: 500 });
      assert.deepEqual(result.afterChange, [[500, 1]]);
      // Each was requested once, and not again when the page rendered with new argument objects.
      assert.deepEqual([result.addedAtFirst, result.adds, result.removes], [1000, 1000, 1000]);
    });

    await t.step(
      "the server receives a query once, and its removal when no component shows it any more",
      async () => {
        await put("reported", 1, "one");
        await put("reported", 2, "two");
        const { steps, live } = await run("reported");
        assert.deepEqual(steps, [
          ["skip", 0, 0, undefined],
          ["asked", 1, 0, "one"],
          ["equal arguments", 1, 0, "one"],
          ["other arguments", 2, 1, "two"],
          ["another component, the same query", 2, 1, "two"],
          ["unmounted", 2, 2, null],
          ["mounted again", 3, 2, "two"],
          ["skipped again", 3, 3, undefined],
        ]);
        assert.equal(live, 0);
      },
    );

    await t.step("a failing query reaches the error boundary and recovers", async () => {
      await put("failing", 1, "fine");
      const texts = await run("failing");
      assert.deepEqual(texts, ["fine", "asked_to_fail: This row fails", "well again"]);
    });

    await t.step(
      "a component suspends while its query loads, and abandoned queries are released",
      async () => {
        await put("suspending", 1, "one");
        await put("suspending", 2, "fail");
        const { shown, abandoned, adds, removes } = await run("suspending");
        assert.deepEqual(shown, [
          "waiting",
          "one",
          "uno",
          "waiting",
          "asked_to_fail: This row fails",
          "waiting",
          "",
        ]);
        assert.deepEqual([abandoned, adds, removes], [3, 3, 3]);
      },
    );

    await t.step(
      "several queries in one component: values, errors as values, one render a change",
      async () => {
        await put("several", 1, "one");
        await put("several", 2, "two");
        await put("several", 3, "fail");
        const { values, isSame, rendersOfOneChange } = await run("several");
        assert.deepEqual([values, isSame, rendersOfOneChange], [["one", "two", true, undefined], true, 1]);
      },
    );

    await t.step("only changes of the connection's state render", async () => {
      const seen = await run("connection");
      // Strict mode runs the first effect twice.
      assert.deepEqual(seen, ["not yet 0", "not yet 0", "live 0", "live 1", "live 0"]);
    });

    await t.step("an optimistic row is replaced by the real one in one step, in every frame", async () => {
      const count = 20;
      const { frames, domFrames, visible, functions } = await run("optimistic", { count });
      for (const frame of [...frames, ...domFrames]) {
        const ranks = frame.replaceAll(/[()]/g, "").split(" ").filter((rank) => rank !== "").map(Number);
        assert.deepEqual(ranks, ranks.map((_, i) => i), `a gap or a double in "${frame}"`);
      }
      const lengths = frames.map((frame) => frame.split(" ").filter((rank) => rank !== "").length);
      assert.deepEqual(lengths, lengths.toSorted((a, b) => a - b), "a row came and went");
      assert.ok(frames.some((frame) => frame.includes("(")), "nothing was shown before the answer");
      assert.equal(frames.at(-1), Array.from({ length: count }, (_, i) => i).join(" "));
      assert.deepEqual(visible, visible.map(() => true), "not shown when the promise was fulfilled");
      assert.equal(visible.length, count);
      assert.ok(functions <= 2, "the function is another one in each render");
    });

    await t.step("a refused mutation reverts its optimistic update, and actions return results", async () => {
      const { texts, refusal, shouted } = await run("calls");
      assert.deepEqual([texts.slice(-3), refusal, shouted], [["", "wrong", ""], "FunctionError", "HELLO"]);
    });

    for (const seed of SEEDS) {
      await t.step(`a list in pages is a part of the full list in every render (seed ${seed})`, async () => {
        const result = await run("random", { seed, changes: 150, size: 5 });
        assert.deepEqual(result.faults, []);
        assert.ok(result.isComplete);
        assert.deepEqual([result.live, result.liveAfter], [result.pages + 1, 0]);
        assert.ok(result.largestPage <= 2, `a page of ${result.largestPage} times its size`);
        assert.ok(result.pages <= result.rows + 2, `${result.pages} pages for ${result.rows} rows`);
      });
    }

    await t.step("rows and functions of a paginated list keep their identity", async () => {
      const { kept, sameLoadMore, isSameList } = await run("identity");
      assert.deepEqual(kept, [true, true, false, true, true]);
      assert.deepEqual([sameLoadMore, isSameList], [true, true]);
    });

    await t.step("a list whose query reads other rows after a sign-in restarts", async () => {
      const { text, lengths } = await run("foreign");
      assert.equal(text, "");
      assert.deepEqual(lengths, [0, 4, 8, 0, 2, 4]);
    });

    await t.step("signing in and out is rendered, with the queries of the current user", async () => {
      assert.deepEqual(await run("signing"), ["loading", "out", "in as me", "out"]);
    });

    await t.step(
      "MF1 MF7 AN1 a second factor is set up, asked for and removed, and a user signs in without an account",
      async () => {
        assert.deepEqual(await run("secondFactor"), [
          "set up, 10 recovery codes",
          "invalid_code",
          "signed in with a code",
          "removed",
          "signed in at once",
          "signed in without an account",
        ]);
      },
    );

    await t.step("signing in with tokens of the app is rendered as well", async () => {
      const { frames, sawOther } = await run("ownTokens");
      assert.deepEqual([frames, sawOther], [["out", "loading", "in as me", "out"], false]);
    });

    await t.step("a page rendered on a server is hydrated without a flash and becomes live", async () => {
      await put("hydrated", 1, "first");
      await put("hydrated", 2, "second");
      const list = await preloadQuery(http, api.rows.all, { list: "hydrated" });
      const html = renderToString(
        <SynclineProvider client={null}>
          <Rows list={list} />
        </SynclineProvider>,
      );
      assert.match(html, /<li>first<\/li><li>second<\/li>.*loading/);
      const { before, sameItem, complaints, commits } = await run("hydrated", {
        html,
        list: JSON.parse(JSON.stringify(list)),
      });
      assert.deepEqual([before, sameItem, complaints], [["firstsecond"], true, []]);
      assert.ok(commits <= 6, `${commits} renders`);
      await put("hydrated", 3, "fail");
      await assert.rejects(preloadQuery(http, api.rows.text, { list: "hydrated", rank: 3 }), FunctionError);
    });
  });
});
