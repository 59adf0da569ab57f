/**
 * Resources of operations: processor time of all processes of the server, and their memory, beside a bare server
 * on SQLite that commits each operation by itself. With `--cores 1` both have one processor to themselves: what a small
 * machine serves. Each group can be asked for by itself, as `cheap:list`.
 */
import type { BenchContext } from "../../context.ts";
import type { Row } from "../../table.ts";
import { backupRows } from "./backup.ts";
import { fanOutRows } from "./fan_out.ts";
import { insertRows } from "./inserts.ts";
import { listRows } from "./list.ts";
import { memoryRows } from "./memory.ts";
import { startRows } from "./start.ts";
import { subscriptionRows } from "./subscriptions.ts";
import { deoptimizationRows } from "./thrown_away.ts";
import { thumbnailRows } from "./thumbnails.ts";
import { readRows, sharedRows, singleRows, transferRows } from "./transfers.ts";

type Group = (context: BenchContext) => Promise<Row[]>;

const groups: Readonly<Record<string, Group>> = {
  transfers: transferRows,
  shared: sharedRows,
  inserts: insertRows,
  reads: readRows,
  single: singleRows,
  "fan-out": fanOutRows,
  subscriptions: subscriptionRows,
  list: listRows,
  backup: backupRows,
  thumbnails: thumbnailRows,
  memory: memoryRows,
  start: startRows,
  "thrown-away": deoptimizationRows,
};

/** The groups by the names they are asked for with. */
export const cheapGroups: Readonly<Record<string, Group>> = Object.fromEntries(
  Object.entries(groups).map(([name, group]) => [`cheap:${name}`, group]),
);
