/** The hooks without a live client: on a server, and outside of a provider. */
import assert from "node:assert/strict";
import type { ReactNode } from "react";
import { renderToString } from "react-dom/server";
import { SynclineClient } from "syncline/client";
import {
  Authenticated,
  AuthLoading,
  type Mutate,
  SynclineProvider,
  Unauthenticated,
  useAuth,
  useConnectionState,
  useMutation,
  usePaginatedQuery,
  usePreloadedQuery,
  useQueries,
  useQuery,
  useSyncline,
} from "syncline/react";
import { api } from "./page/api.ts";

function render(component: () => ReactNode, { provided = true } = {}): string {
  const Component = component;
  return renderToString(
    provided
      ? (
        <SynclineProvider client={null}>
          <Component />
        </SynclineProvider>
      )
      : <Component />,
  );
}

Deno.test("a page renders without a WebSocket, with the client that it has at module level", async () => {
  const { WebSocket } = globalThis;
  Reflect.deleteProperty(globalThis, "WebSocket");
  try {
    const client = new SynclineClient("http://host.test");
    const Text = () => <p>{String(useQuery(api.rows.text, { list: "a", rank: 1 }))}</p>;
    const html = renderToString(
      <SynclineProvider client={client}>
        <Text />
      </SynclineProvider>,
    );
    assert.equal(html, "<p>undefined</p>");
    await assert.rejects(client.query(api.rows.text, { list: "a", rank: 1 }), /pass a WebSocket/);
    client.close();
  } finally {
    globalThis.WebSocket = WebSocket;
  }
});

Deno.test("outside of a page, a client connects with its first use", async () => {
  const { WebSocket } = globalThis;
  const opened: string[] = [];
  globalThis.WebSocket = class {
    constructor(url: string) {
      opened.push(url);
    }
    close() {}
  } as unknown as typeof WebSocket;
  try {
    const uses: ((client: SynclineClient) => unknown)[] = [
      (client) => void client.query(api.rows.text, { list: "a", rank: 1 }).catch(() => {}),
      (client) => client.onConnectionState(() => {}),
      (client) => client.onAuthState(() => {}),
      (client) => client.setAuth(() => Promise.resolve(null)),
    ];
    for (const [index, use] of uses.entries()) {
      const client = new SynclineClient("http://host.test");
      const Status = () => <p>{useAuth().status}</p>;
      renderToString(
        <SynclineProvider client={client}>
          <Status />
        </SynclineProvider>,
      );
      assert.equal(opened.length, index);
      use(client);
      use(client);
      assert.equal(opened.length, index + 1);
      client.close();
      await Promise.resolve();
    }
  } finally {
    globalThis.WebSocket = WebSocket;
  }
});

Deno.test("on a server queries are loading and preloaded ones are available", () => {
  const html = render(() => {
    const one = useQuery(api.rows.text, { list: "a", rank: 1 });
    const { me } = useQueries({ me: { query: api.rows.me, args: {} } });
    const { results, status, isLoading } = usePaginatedQuery(api.rows.page, { list: "a" }, {
      initialNumItems: 3,
    });
    const loaded = usePreloadedQuery({ path: "rows:text", args: { list: "a", rank: 2 }, value: "here" });
    const { isConnected, phase } = useConnectionState();
    return JSON.stringify([one ?? null, me ?? null, results, status, isLoading, loaded, isConnected, phase]);
  });
  assert.equal(
    html.replaceAll("&quot;", '"'),
    '[null,null,[],"LoadingFirstPage",true,"here",false,"idle"]',
  );
});

Deno.test("on a server the signed-in user is unknown, and nothing can be called", async () => {
  let put: Mutate<typeof api.rows.put> | null = null;
  let readAuth = () => {};
  const html = render(() => {
    put = useMutation(api.rows.put);
    const { auth } = useAuth();
    readAuth = () => void auth.signOut();
    return (
      <>
        <AuthLoading>loading</AuthLoading>
        <Authenticated>in</Authenticated>
        <Unauthenticated>out</Unauthenticated>
      </>
    );
  });
  assert.equal(html, "loading");
  const call = put as Mutate<typeof api.rows.put> | null;
  assert(call !== null);
  await assert.rejects(call({ list: "a", rank: 1, text: "x" }), /No live client/);
  assert.throws(readAuth, /No live client/);
  assert.throws(() => render(() => void useSyncline()), /No live client/);
});

Deno.test("outside of a provider a hook names the missing provider", () => {
  assert.throws(
    () => render(() => String(useQuery(api.rows.me)), { provided: false }),
    /Missing <SynclineProvider>/,
  );
});

Deno.test("arguments that are not JSON are refused with their position", () => {
  const bad = { list: "a", rank: (() => 1) as never };
  assert.throws(() => render(() => String(useQuery(api.rows.text, bad))), TypeError);
});
