/** The entries for React Native, in a context with the globals of React Native and no others. */
import assert from "node:assert/strict";
import vm from "node:vm";
import { build, stop } from "esbuild";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { AppStateLike, followAppState, SecureStoreLike, secureTokens } from "syncline/react-native";
import type { SynclineClient, SynclineClientOptions } from "../../mod/client/mod.ts";
import { linkPackages } from "../support/linked_packages.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { until } from "../support/waiting.ts";
import { withServer } from "./support/real_server.ts";
import { settle } from "./support/fake_clock.ts";
import { makeTestClient, transition, updated } from "./support/test_client.ts";

/** The exports of the bundle of an app. */
interface App {
  readonly SynclineClient: new (server: string, options?: SynclineClientOptions) => SynclineClient;
  readonly useQuery: unknown;
  readonly followAppState: typeof followAppState;
  readonly secureTokens: typeof secureTokens;
}

/** The `URL` of React Native in the parts that differ: it has no setters, and appends relative addresses. */
class NativeUrl {
  readonly #text: string;
  constructor(url: string, base?: string) {
    this.#text = base === undefined
      ? url.replace(/^(\w+:\/\/[^/?#]+)$/, "$1/")
      : `${base.replace(/\/$/, "")}/${url}`;
  }
  get href(): string {
    return this.#text;
  }
  toString(): string {
    return this.#text;
  }
}

/** The `AbortController` of earlier versions: signals have no reason and no static methods. */
class NativeAbortController {
  readonly #own = new AbortController();
  get signal(): AbortSignal {
    return this.#own.signal;
  }
  abort(): void {
    this.#own.abort();
  }
}

/** The globals of React Native, with the polyfill. It has no `document`, `location`, `localStorage`, `TextDecoder` or `structuredClone`. */
function nativeGlobals(): Record<string, unknown> {
  const globals: Record<string, unknown> = {
    AbortController: NativeAbortController,
    URL: NativeUrl,
    WebSocket,
    clearInterval,
    clearTimeout,
    console,
    crypto: { getRandomValues: (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes) },
    fetch,
    navigator: { product: "ReactNative" },
    process: { env: { NODE_ENV: "production" } },
    queueMicrotask,
    setInterval,
    setTimeout,
  };
  return Object.assign(globals, { global: globals, window: globals });
}

/** Bundles the entries and evaluates them like an app. */
async function loadApp(dir: string): Promise<{ readonly app: App; readonly context: vm.Context }> {
  await linkPackages(join(dir, "node_modules"), ["react"], import.meta.url);
  const entries = ["client", "react", "react-native"];
  const local = (name: string) => fileURLToPath(import.meta.resolve(`syncline/${name}`));
  try {
    const { outputFiles } = await build({
      stdin: {
        contents: entries.map((name) => `export * from ${JSON.stringify(local(name))};`).join("\n"),
        resolveDir: dirname(fileURLToPath(import.meta.url)),
      },
      bundle: true,
      format: "iife",
      globalName: "app",
      nodePaths: [join(dir, "node_modules")],
      write: false,
      logLevel: "error",
    });
    const context = vm.createContext(nativeGlobals());
    vm.runInContext(outputFiles[0]?.text ?? "", context);
    assert.equal(
      vm.runInContext("typeof TextDecoder + typeof crypto.randomUUID", context),
      "undefinedundefined",
    );
    return { app: vm.runInContext("app", context) as App, context };
  } finally {
    await stop();
  }
}

/** `expo-secure-store`: throws for keys with other characters. */
class SecureStore implements SecureStoreLike {
  readonly items = new Map<string, string>();
  getItemAsync(key: string): Promise<string | null> {
    return Promise.resolve(this.items.get(this.#checked(key)) ?? null);
  }
  setItemAsync(key: string, value: string): Promise<void> {
    return Promise.resolve(void this.items.set(this.#checked(key), value));
  }
  deleteItemAsync(key: string): Promise<void> {
    return Promise.resolve(void this.items.delete(this.#checked(key)));
  }
  #checked(key: string): string {
    assert.match(key, /^[\w.-]+$/);
    return key;
  }
}

class AppState implements AppStateLike {
  readonly listeners = new Set<(state: string) => void>();
  addEventListener(_type: "change", listener: (state: string) => void): { remove(): void } {
    this.listeners.add(listener);
    return { remove: () => this.listeners.delete(listener) };
  }
  become(state: string): void {
    for (const listener of this.listeners) listener(state);
  }
}

Deno.test({
  name: "an app signs in, follows queries, and stays signed in with only the globals of React Native",
  // The service behind esbuild exits shortly after it was stopped.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using folder = new TempFolder();
    const { app, context } = await loadApp(folder.path);
    assert.equal(typeof app.useQuery, "function");
    await withServer(async (url) => {
      const storage = app.secureTokens(new SecureStore());
      const appState = new AppState();
      const open = () => new app.SynclineClient(url, { accounts: { storage } });
      const client = open();
      const end = app.followAppState(client, appState, { pauseAfterMs: 1 });
      try {
        await client.auth.signUp({ email: "ada@example.com", password: "correct horse" });
        let numbers: unknown = null;
        client.subscribe("entries:numbers", { author: "a" }, (value) => numbers = value);
        await client.mutation("entries:append", { author: "a", n: 1 });
        assert.deepEqual(JSON.stringify(numbers), "[1]");
        const state = () => client.connectionState();
        appState.become("background");
        await until(() => state().phase === "idle", { what: "the pause" });
        appState.become("active");
        assert.equal(state().phase, "connecting");
        assert.equal(await client.mutation("entries:append", { author: "a", n: 2 }), 2);
        assert.deepEqual(JSON.stringify(numbers), "[1,2]");
        const signed = "/api/storage/abc?exp=1&sig=x";
        assert.deepEqual([
          client.fileUrl("abc"),
          client.fileUrl("abc", { thumb: "200x100", fit: "cover" }),
          client.fileUrl(signed),
          client.fileUrl(`https://files.test${signed}`, { thumb: "50" }),
        ], [
          `${url}/api/storage/abc`,
          `${url}/api/storage/abc?thumb=200x100&fit=cover`,
          `${url}${signed}`,
          `https://files.test${signed}&thumb=50`,
        ]);
        assert.equal(
          client.auth.oauthAddress("github", "app://back"),
          `${url}/api/auth/oauth/github?redirect_to=app%3A%2F%2Fback`,
        );
      } finally {
        end();
        client.close();
      }
      assert.equal(appState.listeners.size, 0);
      const again = open();
      try {
        again.authState();
        await until(() => again.authState().status === "signedIn", { what: "the stored tokens" });
        await again.auth.signOut();
      } finally {
        again.close();
      }
      vm.runInContext("delete globalThis.crypto", context);
      assert.throws(open, {
        message: "No crypto: install react-native-get-random-values or expo-crypto",
      });
    });
  },
});

Deno.test("an app in the background keeps its connection while a call is in flight, and pauses again after calls", async () => {
  const { followAppState } = await import("syncline/react-native");
  using test = makeTestClient();
  const { client } = test;
  await test.open();
  const appState = new AppState();
  let pauseIfUnused = () => {};
  const original = globalThis.setInterval;
  // The interval is run by hand.
  globalThis.setInterval = ((run: () => void) => {
    pauseIfUnused = run;
    return 0;
  }) as unknown as typeof setInterval;
  try {
    followAppState(client, appState);
    appState.become("inactive");
    pauseIfUnused();
    assert.equal(client.connectionState().phase, "open", "the app switcher is not the background");
    const call = client.action("entries:count", {});
    appState.become("background");
    pauseIfUnused();
    assert.equal(client.connectionState().phase, "open");
    test.sockets.last.receive({
      type: "ActionResponse",
      requestId: 0,
      success: true,
      result: 1,
      logLines: [],
    });
    assert.equal(await call, 1);
    pauseIfUnused();
    assert.equal(client.connectionState().phase, "idle");
    client.mutation("entries:append", {}).catch(() => {});
    assert.equal(client.connectionState().phase, "connecting", "a call ends the pause");
    pauseIfUnused();
    assert.equal(client.connectionState().phase, "connecting");
    const socket = await test.open();
    socket.receive({
      type: "MutationResponse",
      requestId: 1,
      success: true,
      result: null,
      ts: 1,
      logLines: [],
    });
    await settle();
    const query = client.query("entries:numbers", {});
    assert.equal(client.connectionState().inflightQueries, 1);
    pauseIfUnused();
    assert.equal(client.connectionState().phase, "open", "a one-shot query is in flight");
    await settle();
    socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, 7)]));
    assert.equal(await query, 7);
    pauseIfUnused();
    assert.equal(client.connectionState().phase, "idle");
  } finally {
    globalThis.setInterval = original;
  }
});
