/** Starts both servers with the same rows. */
import { z } from "zod";
import { type BenchContext, benchFunctions } from "../../context.ts";
import type { ServerProcess } from "../../../tests/support/processes/server_process.ts";
import { seedRows } from "../../support/seed.ts";
import { PocketBase, type PocketBaseOptions, rowId } from "./pocketbase.ts";

/** Text of each row: 200 characters. */
export const TEXT = "Good morning to you all, the kettle is on in here. ".repeat(4).slice(0, 200);
/** Rows of a call that lists them. */
const ROWS_PER_CALL = 4_000;
/** High limits that refuse no request. PocketBase has no limits by default. */
const RATE_LIMITS = ["credentialsPerClient", "failuresPerAccountAndClient", "failuresPerAccount"]
  .map((name) => `${name}=100000/100000`).join(",");

export interface PairOptions extends Pick<PocketBaseOptions, "program" | "synchronous"> {
  /** Number of rows. */
  readonly rows: number;
}

export interface Pair {
  readonly syncline: ServerProcess;
  readonly pocketBase: PocketBase;
  /** Ids of the rows, by row number. */
  readonly ids: { readonly syncline: readonly string[]; readonly pocketBase: readonly string[] };
}

export function startSyncline(context: BenchContext, dataDir = context.folder()): Promise<ServerProcess> {
  return context.server(benchFunctions, { dataDir, flags: ["--rate-limits", RATE_LIMITS] });
}

export async function startPair(
  context: BenchContext,
  { rows, program, synchronous }: PairOptions,
): Promise<Pair> {
  const syncline = await startSyncline(context);
  const options = { program, dataDir: context.folder(), ...(synchronous && { synchronous }) };
  await PocketBase.prepare(context, options, { count: rows, text: TEXT });
  const pocketBase = await PocketBase.start(context, options);
  if (synchronous !== undefined) await pocketBase.checkSynchronous(synchronous);
  await seedRows(syncline, { count: rows, chars: TEXT.length });
  const ids: string[] = [];
  for (let start = 0; start < rows; start += ROWS_PER_CALL) {
    const count = Math.min(ROWS_PER_CALL, rows - start);
    ids.push(
      ...z.array(z.string()).length(count).parse(await syncline.call("query", "rows:ids", { start, count })),
    );
  }
  return {
    ...{ syncline, pocketBase },
    ids: { syncline: ids, pocketBase: Array.from({ length: rows }, (_, number) => rowId(number)) },
  };
}
