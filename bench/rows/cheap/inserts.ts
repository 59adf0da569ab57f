/** Inserts with a membership rule, beside the same on bare SQLite. */
import { type BenchContext, benchFunctions, type Control } from "../../context.ts";
import { compare } from "../../support/rounds.ts";
import { seedRooms } from "../../support/seed.ts";
import type { Row } from "../../table.ts";
import { CLIENTS, rateRow, uniform } from "./transfers.ts";

/** Rooms of the control. */
const ROOMS = 1_000;

export async function insertRows(context: BenchContext): Promise<Row[]> {
  const server = await context.server(benchFunctions);
  const control = await context.control("sqlite_server", [1_000]);
  const load = context.load();
  await seedRooms(server, ROOMS);
  const durationMs = context.full ? 2_000 : 1_000;
  const workload = { ...uniform, accounts: ROOMS };
  const side = ({ pid, port }: Control) => ({
    pid,
    work: () => load.run("httpLoop", { port, clients: CLIENTS, durationMs, workload, calls: "posts" }),
  });
  const comparison = await compare(context, {
    ours: side(server),
    control: side(control),
    operations: ({ answered }) => answered,
  });
  return [rateRow("inserts with a membership rule, HTTP, 64 x 1", comparison, 1.2)];
}
