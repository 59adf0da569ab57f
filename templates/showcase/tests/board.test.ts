import { createTestServer } from "syncline/test";
import { expect, test } from "vitest";
import { api } from "../functions/_generated.ts";

const functionsDir = new URL("../functions", import.meta.url);

test("users vote once, and only authors remove their cards", async () => {
  const server = await createTestServer({ functionsDir });
  try {
    const [ada, ben] = [await server.asUser("Ada"), await server.asUser("Ben")];
    const card = await ada.mutation(api.cards.add, { column: "good", text: "Fast releases" });
    await ben.mutation(api.cards.vote, { card, on: true });
    await ben.mutation(api.cards.vote, { card, on: true });
    const found = await ada.query(api.cards.list, { search: "releas" });
    expect(found).toMatchObject([{ author: "Ada", voters: [ben.userId] }]);
    await expect(ben.mutation(api.cards.remove, { card })).rejects.toThrow("Only its author");
    await expect(server.query(api.cards.list, { search: "" })).rejects.toThrow("Sign in first");
  } finally {
    await server.close();
  }
});

test("the timer ends", async () => {
  const server = await createTestServer({ functionsDir });
  try {
    const ada = await server.asUser("Ada");
    await ada.mutation(api.rounds.start, { minutes: 5 });
    await server.advance(5 * 60_000);
    expect(await ada.query(api.rounds.current)).toMatchObject({ isOver: true });
  } finally {
    await server.close();
  }
});
