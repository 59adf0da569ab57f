/** Both servers, with the same rows. */
import { z } from "zod";
import { type BenchContext, benchFunctions } from "../../context.ts";
import type { ServerProcess } from "../../../tests/support/processes/server_process.ts";
import { PocketBase, type PocketBaseOptions, rowId } from "./pocketbase.ts";

/** The text of a row, 200 characters. */
export const TEXT = "Good morning to you all, the kettle is on in here. ".repeat(4).slice(0, 200);
/** Rows that are made or listed by one call. */
const ROWS_AT_ONCE = 4_000;
/** So high that no request of the benchmark is refused. PocketBase has no limits by default. */
const RATE_LIMITS = ["credentialsPerClient", "failuresPerAccountAndClient", "failuresPerAccount"]
  .map((name) => `${name}=100000/100000`).join(",");

export interface PairOptions extends Pick<PocketBaseOptions, "program" | "synchronous"> {
  /** Rows of each server, numbered from 0. */
  readonly rows: number;
}

export interface Pair {
  readonly syncline: ServerProcess;
  readonly pocketBase: PocketBase;
  /** Ids of the rows. */
  readonly ids: { readonly syncline: readonly string[]; readonly pocketBase: readonly string[] };
}

export function startSyncline(context: BenchContext, dataDir = context.folder()): Promise<ServerProcess> {
  return context.serverAs({ functions: benchFunctions, dataDir, flags: ["--rate-limits", RATE_LIMITS] });
}

/** Starts both servers. They end with the row. */
export async function startPair(
  context: BenchContext,
  { rows, program, synchronous }: PairOptions,
): Promise<Pair> {
  const syncline = await startSyncline(context);
  const options = { program, dataDir: context.folder(), ...(synchronous && { synchronous }) };
  await PocketBase.prepare(context, options, { count: rows, text: TEXT });
  const pocketBase = await PocketBase.start(context, options);
  if (synchronous !== undefined) await pocketBase.checkSynchronous(synchronous);
  const ids: string[] = [];
  for (let start = 0; start < rows; start += ROWS_AT_ONCE) {
    const count = Math.min(ROWS_AT_ONCE, rows - start);
    await syncline.call("mutation", "rows:fill", { start, count, chars: TEXT.length });
    ids.push(
      ...z.array(z.string()).length(count).parse(await syncline.call("query", "rows:ids", { start, count })),
    );
  }
  return {
    ...{ syncline, pocketBase },
    ids: { syncline: ids, pocketBase: Array.from({ length: rows }, (_, number) => rowId(number)) },
  };
}
