/**
 * Processor time and memory of operations, beside a bare server on SQLite that commits each operation separately. With
 * `--cores 1` the servers share one processor, like on a small machine. `cheap:list` selects one group.
 */
import type { BenchContext } from "../../context.ts";
import type { Row } from "../../table.ts";
import { backupRows } from "./backup.ts";
import { deoptimizationRows } from "./deoptimizations.ts";
import { fanOutRows } from "./fan_out.ts";
import { insertRows } from "./inserts.ts";
import { listRows } from "./list.ts";
import { memoryRows } from "./memory.ts";
import { startRows } from "./start.ts";
import { subscriptionRows } from "./subscriptions.ts";
import { thumbnailRows } from "./thumbnails.ts";
import { readRows, sharedRows, singleRows, transferRows } from "./transfers.ts";

/** Groups by name. */
export const cheapGroups: Readonly<Record<string, (context: BenchContext) => Promise<Row[]>>> = {
  "cheap:transfers": transferRows,
  "cheap:shared": sharedRows,
  "cheap:inserts": insertRows,
  "cheap:reads": readRows,
  "cheap:single": singleRows,
  "cheap:fan-out": fanOutRows,
  "cheap:subscriptions": subscriptionRows,
  "cheap:list": listRows,
  "cheap:backup": backupRows,
  "cheap:thumbnails": thumbnailRows,
  "cheap:memory": memoryRows,
  "cheap:start": startRows,
  "cheap:deoptimizations": deoptimizationRows,
};
