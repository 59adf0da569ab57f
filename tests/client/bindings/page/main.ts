/** A scenario that runs with the binding of each framework, started by the test. */
import { FunctionError, SynclineClient } from "syncline/client";
import { api } from "../../react/page/api.ts";
import { initial, list, type Mount } from "./adapter.ts";
import { mountSolid, mountSuspended } from "./solid.ts";
import { mountSvelte } from "./svelte.ts";
import { mountVue } from "./vue.ts";

const frameworks: Readonly<Record<string, Mount>> = { vue: mountVue, svelte: mountSvelte, solid: mountSolid };

/** Throws unless both have the same JSON. */
function equal(actual: unknown, expected: unknown): void {
  const [found, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (found !== wanted) throw new Error(`Found ${found} instead of ${wanted}`);
}

async function until(read: () => unknown, expected: unknown): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (JSON.stringify(read()) !== JSON.stringify(expected) && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  equal(read(), expected);
}

/** Follows live queries, arguments, errors, pages and calls in one component. */
async function scenario(mount: Mount): Promise<void> {
  const client = new SynclineClient(location.origin);
  await client.mutation(api.rows.put, { list, rank: 1, text: "one" });
  await client.mutation(api.rows.put, { list, rank: 2, text: "fail" });
  const { setRank, row, rowReader, pages, loadMore, put, putNow, shout, isConnected, authStatus, unmount } =
    mount(
      client,
      document.body.appendChild(document.createElement("div")),
    );
  equal(row(), { error: null, isLoading: false });

  setRank(1);
  equal(row(), { data: initial, error: null, isLoading: false });
  await until(row, { data: "one", error: null, isLoading: false });
  equal(isConnected(), true);
  await until(authStatus, "signedOut");
  if (rowReader !== undefined) {
    rowReader.stop();
    const watch = client.watchQuery(api.rows.text, { list, rank: 1 });
    await until(() => watch.localResult() === undefined, true);
    equal(row(), { error: null, isLoading: true });
    rowReader.start();
    await until(row, { data: "one", error: null, isLoading: false });
  }
  setRank(2);
  equal(row(), { error: null, isLoading: true });
  await until(() => row().error instanceof FunctionError, true);
  await put({ list, rank: 2, text: "two" });
  equal(row(), { data: "two", error: null, isLoading: false });

  await until(pages, { ranks: [1], status: "CanLoadMore", isLoading: false });
  loadMore();
  equal(pages(), { ranks: [1], status: "LoadingMore", isLoading: true });
  await until(pages, { ranks: [1, 2], status: "CanLoadMore", isLoading: false });
  loadMore();
  await until(pages, { ranks: [1, 2], status: "Exhausted", isLoading: false });

  const changed = putNow({ list, rank: 2, text: "due" });
  await Promise.resolve();
  equal(row().data, "due");
  await changed;
  equal(await shout("hello"), "HELLO");
  setRank(null);
  equal(row(), { error: null, isLoading: false });
  setRank(1);
  equal(row().data === initial, false);
  await until(() => row().data, "one");

  unmount();
  const watch = client.watchQuery(api.rows.text, { list, rank: 1 });
  await until(() => watch.localResult() === undefined, true);
  client.close();
}

/** Changes a state while a pending `Suspense` of Solid delays the subscription to it. */
async function suspension(): Promise<void> {
  const client = new SynclineClient(location.origin);
  const token = Promise.withResolvers<null>();
  const loading = Promise.withResolvers<string>();
  client.setAuth(() => token.promise);
  const root = document.body.appendChild(document.createElement("div"));
  const { authStatus, unmount } = mountSuspended(client, { root, loading: loading.promise });
  equal(authStatus(), "loading");
  token.resolve(null);
  await until(() => client.authState().status, "signedOut");
  loading.resolve("loaded");
  await until(() => root.textContent, "loaded");
  await until(authStatus, "signedOut");
  unmount();
  client.close();
}

Object.assign(globalThis, {
  run: async (framework: string) => {
    const mount = frameworks[framework];
    if (mount === undefined) throw new Error(`Unknown framework ${framework}`);
    await scenario(mount);
    if (framework === "solid") await suspension();
  },
});
