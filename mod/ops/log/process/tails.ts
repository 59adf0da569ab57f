/**
 * Selects runs for live tails directly from a batch. The event of a matching run is encoded once for all tails, and tails with
 * the same selection share a message entry.
 */
import { logLimits } from "../../limits.ts";
import { NumberColumns } from "../packs/number_columns.ts";
import { column, COLUMNS, nothingTold, recordAt, type RunPack, type ToldRun } from "../packs/run_pack.ts";
import { admitsFunction, type RunFilter } from "../run_filter.ts";
import { loggedRun, searchedText } from "../run_record.ts";
import { runEvent } from "../stream/events.ts";
import type { TailedMessage } from "./messages.ts";

/** A tail that may match runs of a batch. */
interface TailMatch {
  readonly tail: number;
  readonly filter: RunFilter;
  /** Whether it matches a function, by the function's index in the batch. */
  readonly functions: readonly boolean[];
  /** As stored in the column; `null` matches any caller. */
  readonly caller: number | null;
  readonly text: string | null;
  /** Indexes of its events in the message. */
  readonly events: number[];
  missed: number;
}

export class Tails {
  readonly #filters = new Map<number, RunFilter>();

  set(tail: number, filter: RunFilter): void {
    this.#filters.set(tail, filter);
  }

  delete(tail: number): void {
    this.#filters.delete(tail);
  }

  /** Returns the message for a batch whose first run has the ID; `null` if nothing matches. */
  pick(pack: RunPack, firstId: number): TailedMessage | null {
    const wanting = [...this.#filters].flatMap(([tail, filter]) => matchTail(pack, { tail, filter }) ?? []);
    if (wanting.length === 0) return null;
    const events = new BatchSelection(pack, firstId).pick(wanting);
    const told = together(wanting);
    return told.length === 0 ? null : { type: "Tailed", lastId: firstId + pack.count - 1, events, told };
  }
}

/** Selection state for one batch. */
class BatchSelection {
  readonly #pack: RunPack;
  readonly #firstId: number;
  readonly #columns: NumberColumns;
  readonly #told: ReadonlyMap<number, ToldRun>;
  readonly #events: string[] = [];
  #chars = 0;

  constructor(pack: RunPack, firstId: number) {
    this.#pack = pack;
    this.#firstId = firstId;
    this.#columns = new NumberColumns(pack.columns, { columns: COLUMNS, rows: pack.count });
    this.#told = new Map(pack.told.map((told) => [told[0], told]));
  }

  pick(wanting: readonly TailMatch[]): readonly string[] {
    const byFunction = this.#pack.functions.map((_, fn) => wanting.filter(({ functions }) => functions[fn]));
    for (let row = 0; row < this.#pack.count; row++) {
      const interested = byFunction[this.#columns.at(column.fn, row)] ?? [];
      if (interested.length > 0) this.#offer(row, interested);
    }
    return this.#events;
  }

  #offer(row: number, interested: readonly TailMatch[]): void {
    // Decoded and lower-cased lazily, by the first tail that needs it.
    let event: number | null = null;
    let text: string | null = null;
    for (const wanting of interested) {
      if (!this.#admits(wanting, row)) continue;
      if (wanting.text !== null) {
        text ??= this.#textOf(row);
        if (!text.includes(wanting.text)) continue;
      }
      if (
        wanting.events.length < logLimits.streamRunsMax &&
        (event !== null || this.#chars < logLimits.tailedCharsMax)
      ) wanting.events.push(event ??= this.#write(row));
      else wanting.missed++;
    }
  }

  /** Whether a run matches, apart from function and text. */
  #admits({ filter, caller, text }: TailMatch, row: number): boolean {
    const { from, to, outcomes, level, request } = filter;
    const columns = this.#columns;
    return (outcomes === undefined || outcomes.includes(columns.at(column.outcome, row))) &&
      (level === undefined || columns.at(column.level, row) >= level) &&
      (caller === null || columns.at(column.caller, row) === caller) &&
      (request === undefined || columns.at(column.request, row) === request) &&
      (from === undefined || columns.at(column.at, row) >= from) &&
      (to === undefined || columns.at(column.at, row) < to) &&
      (text === null || this.#told.has(row));
  }

  #textOf(row: number): string {
    const [, error, logLines] = this.#told.get(row) ?? [row, null, []];
    return searchedText(error, logLines).toLowerCase();
  }

  /** Returns the event's index. */
  #write(row: number): number {
    const { functions, callers } = this.#pack;
    const [path, kind] = functions[this.#columns.at(column.fn, row)] ?? ["?", 0];
    const caller = callers[this.#columns.at(column.caller, row) - 1] ?? null;
    const told = this.#told.get(row);
    const texts = told === undefined ? nothingTold : { error: told[1], logLines: told[2] };
    const record = recordAt(this.#columns, row, { path, kind, caller, ...texts });
    const event = runEvent(loggedRun(this.#firstId + row, record));
    this.#chars += event.length;
    return this.#events.push(event) - 1;
  }
}

/** Returns `null` if no run of a batch with these functions and callers can match. */
function matchTail(
  { functions, callers, told }: RunPack,
  { tail, filter }: { readonly tail: number; readonly filter: RunFilter },
): TailMatch | null {
  if (filter.text !== undefined && told.length === 0) return null;
  const wanted = functions.map(([path, kind]) => admitsFunction(filter, { path, kind }));
  if (!wanted.includes(true)) return null;
  const caller = filter.caller === undefined
    ? null
    : filter.caller === null
    ? 0
    : callers.indexOf(filter.caller) + 1;
  if (caller === 0 && filter.caller !== null) return null;
  const text = filter.text?.toLowerCase() ?? null;
  return { tail, filter, functions: wanted, caller, text, events: [], missed: 0 };
}

/** Groups tails with the same events; drops tails without any. */
function together(wanting: readonly TailMatch[]): TailedMessage["told"] {
  const groups = new Map<
    string,
    { readonly tails: number[]; readonly events: readonly number[]; readonly missed: number }
  >();
  for (const { tail, events, missed } of wanting) {
    if (events.length === 0 && missed === 0) continue;
    const key = `${events.join(" ")},${missed}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { tails: [tail], events, missed });
    else group.tails.push(tail);
  }
  return [...groups.values()];
}
