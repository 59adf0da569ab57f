/** A page that sleeps and wakes, in a real browser driven through its developer tools. */
import assert from "node:assert/strict";
import { SynclineHttpClient } from "../../../mod/client/mod.ts";
import { FaultProxy } from "../support/fault_proxy.ts";
import { BarePage } from "./support/bare_page.ts";
import { withClientPage } from "./support/client_page.ts";
import { pause, until } from "../../support/waiting.ts";
import { chromium, needs } from "../../support/services.ts";

/** About a second is aimed at; a busy machine must not fail a healthy run. */
const AWAKE_MS_MAX = 60_000;
const SLEEP_MS = 1_000;

type ClientModule = typeof import("../../../mod/client/mod.ts");

/** Globals of the page under test. */
interface Scope {
  shown: number[];
  /** How far the page's clock has jumped, in milliseconds. */
  slept: number;
  /** Counts up while timers run. */
  ticks: number;
  phase(): string;
}

/** Runs in the page: subscribes, and displays the results. */
async function subscribe(url: string): Promise<void> {
  const address = "/_/client.js";
  const { SynclineClient }: ClientModule = await import(address);
  const scope = globalThis as unknown as Scope;
  scope.slept = scope.ticks = 0;
  setInterval(() => scope.ticks++, 50);
  // Timers are frozen while a page sleeps, and the time of day advances. The client's time is slower, so that a client that
  // waits for its own timeouts is late.
  const slowness = 10;
  const clock = {
    now: () => Date.now() / slowness + scope.slept,
    setTimeout: (callback: () => void, delayMs: number) => setTimeout(callback, delayMs * slowness),
    clearTimeout: (timer: unknown) => clearTimeout(timer as number),
  };
  const client = new SynclineClient(url, { clock });
  client.subscribe("entries:numbers", { author: "a" }, (numbers) => scope.shown = numbers as number[]);
  scope.phase = () => client.connectionState().phase;
}

const shows = (count: number): boolean => (globalThis as unknown as Scope).shown?.length === count;
const waits = (): boolean => (globalThis as unknown as Scope).phase() === "waiting";
const ticks = (): number => (globalThis as unknown as Scope).ticks;
const sleepAnHour = (): void => {
  (globalThis as unknown as Scope).slept += 3_600_000;
};

Deno.test(
  needs(chromium, "a page that wakes shows writes from its sleep almost immediately"),
  async (t) => {
    await withClientPage(async ({ browser, server }) => {
      const http = new SynclineHttpClient(`http://127.0.0.1:${server.port}`);
      await using proxy = new FaultProxy(server.port);
      const page = await BarePage.open(browser, `http://127.0.0.1:${server.port}/`);
      await page.evaluate(subscribe, `http://127.0.0.1:${proxy.port}`);
      await page.until(shows, 0);
      const lifecycle = (state: "frozen" | "active") => page.send("Page.setWebLifecycleState", { state });
      const network = (offline: boolean) =>
        page.send("Network.emulateNetworkConditions", {
          ...{ offline, latency: 0, downloadThroughput: -1, uploadThroughput: -1 },
        });
      let written = 0;

      /** A write while the page sleeps. Fails if the page shows it late, or during its sleep. */
      const sleeps = async (sleep: () => Promise<void>, wake: () => Promise<void>) => {
        await sleep();
        const before = written++;
        await http.mutation("entries:append", { author: "a", n: written });
        await pause(SLEEP_MS);
        assert(await page.evaluate(shows, before), "it saw the write in its sleep");
        const startedAt = performance.now();
        await wake();
        await page.until(shows, written);
        const ms = performance.now() - startedAt;
        // deno-lint-ignore no-console
        console.log(`right ${ms.toFixed(0)} ms after waking`);
        assert(ms < AWAKE_MS_MAX);
      };
      const freeze = async () => {
        await lifecycle("frozen");
        // The page freezes a moment later.
        await until(async () => {
          const before = await page.evaluate(ticks, null);
          // A page of a busy machine may seem to be frozen for a moment.
          await pause(1_000);
          return await page.evaluate(ticks, null) === before;
        }, { what: "timers are frozen" });
      };

      await t.step("a frozen page with a live connection", async () => {
        await sleeps(freeze, async () => {
          await lifecycle("active");
        });
      });

      await t.step(
        "an hour of sleep during which the network silently dropped the connection",
        async () => {
          await sleeps(async () => {
            await freeze();
            assert(proxy.strike("halfOpen", 0));
          }, async () => {
            await page.evaluate(sleepAnHour, null);
            await lifecycle("active");
          });
        },
      );

      await t.step("a page that was offline", async () => {
        await page.send("Network.enable");
        await sleeps(async () => {
          await network(true);
          proxy.strike("cut", 0);
          await page.until(waits, null);
        }, async () => {
          await network(false);
        });
      });
    });
  },
);
