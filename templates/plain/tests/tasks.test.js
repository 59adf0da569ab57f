import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestServer } from "syncline/test";

test("a task added by one user appears for another", async () => {
  const server = await createTestServer({ functionsDir: new URL("../functions", import.meta.url) });
  try {
    const ada = await server.asUser("Ada");
    const tasks = server.subscribe("tasks:list");
    assert.deepEqual(await tasks.next(), []);
    const task = await ada.mutation("tasks:add", { text: "Buy milk" });
    const [seen] = await tasks.next();
    assert.deepEqual([seen._id, seen.text, seen.by], [task, "Buy milk", ada.userId]);
    await assert.rejects(server.mutation("tasks:add", { text: "Nobody's" }), /Sign in first/);
  } finally {
    await server.close();
  }
});
