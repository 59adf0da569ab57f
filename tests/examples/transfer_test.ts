import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { createTestServer } from "../../mod/testing/mod.ts";

const functionsDir = fileURLToPath(new URL("../../examples/transfer/functions", import.meta.url));

Deno.test("the public transfer benchmark finds its functions: seed, transfer, read, clear", async () => {
  await using server = await createTestServer({ functionsDir });
  const balances = async (...ids: number[]) =>
    await Promise.all(ids.map((id) => server.query("accounts:get_account", { id })));
  await server.mutation("seed:seed_range", { start: 0, count: 10_000, initial: 100 });

  await server.mutation("transfer:transfer", { amount: 30, from_id: 1, to_id: 2 });
  assert.deepEqual(await balances(1, 2, 10_000), [{ id: 1, balance: 70 }, { id: 2, balance: 130 }, null]);

  const moveNothing = [
    { amount: 71, from_id: 1, to_id: 2 },
    { amount: 0, from_id: 1, to_id: 2 },
    { amount: 1, from_id: 1, to_id: 1 },
    { amount: 1, from_id: 1, to_id: 10_000 },
  ];
  for (const args of moveNothing) await server.mutation("transfer:transfer", args);
  assert.deepEqual(await server.query("accounts:sum_range", { start: 0, count: 10_000 }), {
    accounts: 10_000,
    balance: 1_000_000,
  });
  assert.deepEqual(await balances(1, 2), [{ id: 1, balance: 70 }, { id: 2, balance: 130 }]);

  let cleared = 0;
  for (let portion = -1; portion !== 0; cleared += portion) {
    portion = await server.mutation("seed:clear_accounts", {}) as number;
  }
  assert.equal(cleared, 10_000);
});
