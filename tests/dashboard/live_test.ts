/** The dashboard's view of rooms, streams and rate limits in a browser. */
import assert from "node:assert/strict";
import { SynclineClient } from "../../mod/client/mod.ts";
import { joinRoom } from "../../mod/client/presence/mod.ts";
import { checkAppearances, testDashboard } from "./support/dashboard_page.ts";

const functions = {
  "notes.ts": `import { untypedAction, untypedMutation } from "syncline/server";
export const send = untypedMutation({ args: {}, handler: (ctx) =>
  ctx.rateLimit("send note", { key: "ada", rate: 2, per: "hour" }) });
export const speak = untypedAction({ args: {}, handler: async (ctx) => {
  const stream = await ctx.streams.create({ store: false });
  await stream.write("word");
  await stream.end();
} });`,
  "presence.ts": `import { untypedInternalQuery } from "syncline/server";
export const authorize = untypedInternalQuery({ handler: () => ({ name: "Linus" }) });`,
};

testDashboard("rooms, streams and rate limits", { functions }, async (dashboard, t) => {
  const { page, server, go, waitForText, button, call } = dashboard;

  await t.step("each part explains itself while it is empty", async () => {
    await go("live");
    for (const text of ["No client is in a room", "No stream", "No rate limit is in use"]) {
      await waitForText(text);
    }
  });

  await t.step("PR7 a room shows its members with their state", async () => {
    const client = new SynclineClient(server.url, { polling: false, webSocket: WebSocket });
    joinRoom(client, "lobby", { cursor: 7 });
    const background = await button("lobby").evaluate((room) => getComputedStyle(room).backgroundColor);
    assert.equal(background, "rgba(0, 0, 0, 0)");
    await button("lobby").click();
    await page.getByRole("row").filter({ hasText: '{"name":"Linus"}' }).filter({ hasText: '{"cursor":7}' })
      .waitFor();
    client.close();
  });

  await t.step("SM7 a stream is listed with its action and state", async () => {
    await call("notes:speak", {}, "action");
    const row = page.getByRole("row").filter({ hasText: "notes:speak" }).filter({ hasText: "ended" });
    await row.waitFor();
    // While the server does not answer, the start of a stream does not move with the clock.
    const started = () => row.locator("time").getAttribute("title");
    let status = 0;
    await page.route(
      "**/api/admin/live",
      (route) =>
        status === 0 ? route.abort() : route.fulfill({ status, json: { errorMessage: "Not today" } }),
    );
    await waitForText("The server does not answer.");
    const before = await started();
    status = 400;
    await waitForText("Not today");
    assert.equal(await started(), before);
    await page.unroute("**/api/admin/live");
  });

  await t.step(
    "RA5 a limit is listed with its emptiest key, the tokens left, and refused calls",
    async () => {
      const row = page.getByRole("row").filter({ hasText: "send note" });
      await call("notes:send");
      await row.filter({ hasText: "1 of 2" }).filter({ hasText: "ada" }).waitFor();
      for (let n = 0; n < 4; n++) await call("notes:send");
      await row.filter({ hasText: "0 of 2" }).filter({
        has: page.getByRole("cell", { name: "3", exact: true }),
      })
        .waitFor();
    },
  );

  await t.step(
    "DA7 axe finds no accessibility violations",
    () => checkAppearances(dashboard, ["live"]),
  );
});
