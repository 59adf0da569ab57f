/** Documents that rows need before they measure. */
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";

const COUNT_MAX = 4_000;
const BATCH_CHARS = 5_000_000;

/** Calls `fill` for consecutive ranges of at most `size` numbers. */
async function inBatches(
  count: number,
  size: number,
  fill: (start: number, count: number) => Promise<unknown>,
): Promise<void> {
  for (let start = 0; start < count; start += size) await fill(start, Math.min(size, count - start));
}

export const ACCOUNT_BALANCE = 1e9;

/** Inserts the accounts 0 to `count - 1` of the transfer functions. */
export async function seedAccounts(server: ServerProcess, count: number): Promise<void> {
  await inBatches(
    count,
    COUNT_MAX,
    (start, count) => server.call("mutation", "seed:seed_range", { start, count, initial: ACCOUNT_BALANCE }),
  );
}

/** Inserts the rows 0 to `count - 1` with `chars` characters each. */
export async function seedRows(
  server: ServerProcess,
  { count, chars }: { readonly count: number; readonly chars: number },
): Promise<void> {
  await inBatches(
    count,
    Math.min(COUNT_MAX, Math.ceil(BATCH_CHARS / chars)),
    (start, count) => server.call("mutation", "rows:fill", { start, count, chars }),
  );
}

/** Inserts the members of the rooms 0 to `count - 1`. */
export async function seedRooms(server: ServerProcess, count: number): Promise<void> {
  await inBatches(count, 250, (start, count) => server.call("mutation", "rooms:fill", { start, count }));
}

/** Inserts `count` scores into each table. */
export async function seedScores(
  server: ServerProcess,
  { count, games }: { readonly count: number; readonly games: number },
): Promise<void> {
  await inBatches(
    count,
    1_000,
    (start, count) => server.call("mutation", "scores:fill", { start, count, games }),
  );
}
