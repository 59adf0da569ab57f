/** Reconnects to a real server: no client receives an older state than it has seen or written (SG12). */
import assert from "node:assert/strict";
import { SynclineClient, SynclineHttpClient } from "../../mod/client/mod.ts";
import { until } from "../support/waiting.ts";
import { withServer } from "./support/real_server.ts";

/** About a fifth of a second of a reader's time. */
const ROUNDS = 30_000_000;

/** A client whose connection can be lost, and its results for an author's numbers. */
class Tab {
  readonly client: SynclineClient;
  /** Received numbers, one list for each change. */
  readonly shown: number[][] = [];
  readonly #sockets: WebSocket[] = [];

  constructor(url: string, author: string) {
    const sockets = this.#sockets;
    class Socket extends WebSocket {
      constructor(url: string) {
        super(url);
        sockets.push(this);
      }
    }
    this.client = new SynclineClient(url, { polling: false, webSocket: Socket });
    this.client.subscribe("entries:numbers", { author }, (numbers) => this.shown.push(numbers as number[]));
  }

  loseConnection(): void {
    this.#sockets.at(-1)?.close();
  }
}

Deno.test("SG12 CL14 the result of a mutation stays visible over a reconnect during a slow query", async () => {
  await withServer(async (url) => {
    const other = new SynclineClient(url, { polling: false });
    const http = new SynclineHttpClient(url);
    const tab = new Tab(url, "a");
    try {
      let elsewhere: unknown = null;
      other.subscribe("entries:slowly", { rounds: ROUNDS }, (numbers) => elsewhere = numbers);
      await until(() => elsewhere !== null && tab.shown.length === 1, { what: "first results" });
      for (let n = 1; n <= 3; n++) {
        // The slow query starts at this commit and does not include the next one.
        await http.mutation("entries:append", { author: "other", n: n + 100 });
        await tab.client.mutation("entries:append", { author: "a", n });
        assert.equal(tab.shown.at(-1)?.at(-1), n);
        let slow: number[] = [];
        const release = tab.client.subscribe("entries:slowly", { rounds: ROUNDS }, (numbers) => {
          slow = numbers as number[];
        });
        tab.loseConnection();
        await until(() => slow.includes(n), { what: "the slow result" });
        release();
      }
      assert.deepEqual(tab.shown, [[], [1], [1, 2], [1, 2, 3]]);
    } finally {
      tab.client.close();
      other.close();
    }
  });
});
