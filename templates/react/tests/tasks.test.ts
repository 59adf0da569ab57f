import { createTestServer } from "syncline/test";
import { expect, test } from "vitest";
import { api } from "../functions/_generated.ts";

test("a task added by one user appears for another", async () => {
  const server = await createTestServer({ functionsDir: new URL("../functions", import.meta.url) });
  try {
    const ada = await server.asUser("Ada");
    const tasks = server.subscribe(api.tasks.list);
    expect(await tasks.next()).toEqual([]);
    const task = await ada.mutation(api.tasks.add, { text: "Buy milk" });
    expect(await tasks.next()).toMatchObject([{ _id: task, text: "Buy milk", by: ada.userId }]);
    await ada.mutation(api.tasks.remove, { task });
    expect(await tasks.next()).toEqual([]);
    await expect(server.mutation(api.tasks.add, { text: "Nobody's" })).rejects.toThrow("Sign in first");
  } finally {
    await server.close();
  }
});
