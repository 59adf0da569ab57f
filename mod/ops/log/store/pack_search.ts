/** Walks the packs of a part, newest run first, reading only those that may hold runs that pass. */
import { column } from "../packs/run_pack.ts";
import { mayHaveCaller } from "./caller_marks.ts";
import type { LogStore } from "./log_store.ts";
import type { KeptPack, PackHead } from "./pack_table.ts";
import type { PartStep, PartWalk } from "./part_walk.ts";
import type { Segment } from "./segment.ts";

/** A run of a pack that passes, but for its text. */
export interface PackedRun {
  readonly id: number;
  readonly at: number;
  readonly outcome: number;
  readonly segment: Segment;
  readonly pack: KeptPack;
  /** Its position in the pack. */
  readonly position: number;
}

/** Packs looked at in one step. */
const HEADS = 16;

export function* walkPacks({ database }: LogStore, given: PartWalk): Generator<PartStep<PackedRun>> {
  const { segment, filter: { from, to, request }, low, high, limit } = given;
  for (let below = high + 1; below > low;) {
    const heads = segment.packs.heads(database, { below, limit: HEADS, from, to, request });
    let runs: PackedRun[] = [];
    for (const head of heads) {
      below = head.first;
      if (!mayHold(head, given)) continue;
      const pack = segment.packs.read(database, head.first);
      if (pack === null) continue;
      for (const run of passing(pack, given)) {
        runs.push(run);
        if (runs.length < limit) continue;
        yield { runs, low: run.id };
        runs = [];
      }
      if (below <= low) break;
    }
    const last = heads.length < HEADS || below <= low;
    yield { runs, low: last ? low : below };
    if (last) return;
  }
}

function mayHold({ functions, marks }: PackHead, given: PartWalk): boolean {
  const { caller } = given.filter;
  if (given.functions !== null && !functions.some((fn) => given.functions?.has(fn))) return false;
  return typeof caller !== "string" || mayHaveCaller(marks, caller);
}

function* passing(pack: KeptPack, { segment, filter, functions, low, high }: PartWalk): Generator<PackedRun> {
  const { caller, outcomes, level = 0, from = -Infinity, to = Infinity, request } = filter;
  const { columns, first, count } = pack;
  const admitted = pack.functions.map((fn) => functions === null || functions.has(fn));
  const callerAt = typeof caller === "string" ? pack.callers.indexOf(caller) + 1 : 0;
  if (typeof caller === "string" && callerAt === 0) return;
  for (let row = Math.min(count - 1, high - first); row >= Math.max(0, low - first); row--) {
    if (admitted[columns.at(column.fn, row)] !== true) continue;
    if (caller !== undefined && columns.at(column.caller, row) !== callerAt) continue;
    if (request !== undefined && columns.at(column.request, row) !== request) continue;
    if (columns.at(column.level, row) < level) continue;
    const outcome = columns.at(column.outcome, row);
    if (outcomes !== undefined && !outcomes.includes(outcome)) continue;
    const at = columns.at(column.at, row);
    if (at >= from && at < to) yield { id: first + row, at, outcome, segment, pack, position: row };
  }
}
