/** Inserts behind a rule of membership, 64 at once, beside the same on bare SQLite. */
import assert from "node:assert/strict";
import { type BenchContext, benchFunctions } from "../../context.ts";
import { WORKLOAD_SEED } from "../../../tests/support/processes/random.ts";
import type { Row } from "../../table.ts";
import { rateRow } from "./transfers.ts";
import { inRoundRobin } from "./turns.ts";

/** As many as the control has. */
const ROOMS = 1_000;
const FILL_COUNT = 250;

export async function insertRows(context: BenchContext): Promise<Row[]> {
  const server = await context.server(benchFunctions);
  const control = await context.controlProcess("sqlite_server", ["1000"]);
  const load = context.load();
  for (let start = 0; start < ROOMS; start += FILL_COUNT) {
    await server.call("mutation", "rooms:fill", { start, count: FILL_COUNT });
  }
  const durationMs = context.full ? 2_000 : 1_000;
  const workload = { accounts: ROOMS, alpha: 0, seed: WORKLOAD_SEED };
  const side = ({ pid, port }: { readonly pid: number; readonly port: number }) => ({
    pid,
    work: async () => {
      const result = await load.run("httpLoop", {
        ...{ port, clients: 64, inFlight: 1, durationMs, workload },
        calls: "posts",
      });
      assert.equal(result.failed, 0, result.failure ?? "");
      return result;
    },
  });
  const turns = await inRoundRobin(context, {
    ours: side(server),
    control: side(control),
    count: ({ answered }) => answered,
  });
  return [rateRow("inserts with a membership rule, HTTP, 64 x 1", turns, 1.2)];
}
