/** The chat on three servers behind a proxy, with users on each server, when the leader is killed. */
import assert from "node:assert/strict";
import { ChatTab } from "../support/chat_tab.ts";
import { launchChromium } from "../support/chromium.ts";
import { found, until } from "../support/waiting.ts";
import { chromium, needs, postgres } from "../support/services.ts";
import { TestPostgres } from "./support/postgres.ts";
import { Proxy } from "./support/proxy.ts";
import { ProcessRig } from "./support/server_processes.ts";

const PEOPLE = ["Ada", "Grace", "Linus"];

Deno.test({
  ...needs(
    [postgres, chromium],
    "[PG7] [PG13] [PG16] three people chat by three servers, and see no more of their leader's end than a pause",
  ),
  // The browser's driver keeps its own timers and pipes.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using postgres = await TestPostgres.start();
    const app = ["--functions", "examples/chat/functions", "--static", "examples/chat/public"];
    await using rig = await ProcessRig.start(await postgres.database(), PEOPLE.length, { app });
    const { servers } = rig;
    const [first, ...others] = servers;
    await first?.start();
    await Promise.all(others.map((server) => server.start()));
    await using proxy = new Proxy(servers);
    await until(() => proxy.ready.length === servers.length, {
      what: "all servers serve",
    });
    const browser = await launchChromium();
    try {
      const url = `${proxy.url}#deep-sea`;
      const tabs: ChatTab[] = [];
      for (const name of PEOPLE) {
        const tab = await ChatTab.open(browser, { url, name });
        tabs.push(tab);
        await tab.connection("Live");
      }
      // If the leader has changed on a busy machine, its socket may have moved: then all connect again.
      await until(async () => {
        if (proxy.sockets.length === PEOPLE.length && new Set(proxy.sockets).size === servers.length) {
          return true;
        }
        for (const tab of tabs) {
          await tab.page.reload();
          await tab.connection("Live");
        }
        return false;
      }, { what: "each is on a server of its own" });
      const sent: string[] = [];
      const allSay = async (when: string): Promise<void> => {
        await Promise.all(tabs.map(async (tab, at) => {
          const text = `${PEOPLE[at]} ${when}`;
          sent.push(text);
          await tab.say(text);
        }));
        for (const tab of tabs) {
          for (const name of PEOPLE) await tab.sees(name, `${name} ${when}`);
        }
      };
      await allSay("before");

      const leader = await found(() => rig.leader(), { what: "there is a leader" });
      await leader.end("SIGKILL");
      await allSay("while nobody leads");
      for (const tab of tabs) await tab.connection("Live");
      assert.ok(!proxy.sockets.includes(leader), "nobody is where nothing is");
      await allSay("behind the next one");

      const [bodies = []] = await Promise.all(tabs.map((tab) => tab.bodies()));
      assert.deepEqual(bodies.toSorted(), sent.toSorted(), "each was sent once");
      for (const tab of tabs) {
        assert.deepEqual(await tab.bodies(), bodies);
        assert.deepEqual(tab.errors, []);
      }
    } finally {
      await browser.close();
    }
  },
});
