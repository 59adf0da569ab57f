/** Live queries in the cache of TanStack Query. */
import assert from "node:assert/strict";
import { QueryClient, QueryObserver } from "@tanstack/query-core";
import { FunctionError, SynclineClient } from "syncline/client";
import { liveQueryOptions } from "syncline/tanstack";
import { ServerProcess } from "../../support/processes/server_process.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { until } from "../../support/waiting.ts";
import { api } from "../react/page/api.ts";

/** Simulates a page. */
function inPage(): Disposable {
  Object.assign(globalThis, { window: {} });
  return { [Symbol.dispose]: () => void Reflect.deleteProperty(globalThis, "window") };
}

Deno.test("a query in the cache of TanStack Query is live in a page, and fetched once elsewhere", async (t) => {
  await using folder = new TempFolder();
  await using server = await ServerProcess.start({
    dataDir: folder.path,
    functions: "tests/client/react/functions",
  });
  const client = new SynclineClient(`http://127.0.0.1:${server.port}`);
  const cache = new QueryClient();
  using _closed = { [Symbol.dispose]: () => client.close() };
  const args = { list: "a", rank: 1 };
  const options = liveQueryOptions(client, api.rows.text, args);
  const put = (text: string) => client.mutation(api.rows.put, { ...args, text });
  const liveResult = () => client.watchQuery(api.rows.text, args).localResult();

  await t.step("outside of a page it is fetched once; a skipped query is disabled", async () => {
    assert.equal(liveQueryOptions(client, api.rows.text, "skip").enabled, false);
    await put("one");
    assert.equal(await cache.fetchQuery(options), "one");
    assert.equal(liveResult(), undefined);
    cache.clear();
  });

  await t.step(
    "in a page it follows results and errors, also after a refetch, until it is removed",
    async () => {
      using _page = inPage();
      const observer = new QueryObserver(cache, options);
      const end = observer.subscribe(() => {});
      const shown = () => observer.getCurrentResult();
      assert.equal(shown().status, "pending");
      await until(() => shown().data === "one");
      await put("two");
      await until(() => shown().data === "two");
      await put("fail");
      await until(() => shown().status === "error");
      assert.ok(shown().error instanceof FunctionError);
      await put("three");
      await until(() => shown().status === "success");
      assert.deepEqual([shown().data, shown().error], ["three", null]);

      await cache.invalidateQueries({ queryKey: options.queryKey });
      assert.equal(shown().data, "three");
      await put("four");
      await until(() => shown().data === "four");
      assert.equal(liveResult(), "four");
      end();
      cache.removeQueries({ queryKey: options.queryKey });
      await until(() => liveResult() === undefined);
    },
  );
});
