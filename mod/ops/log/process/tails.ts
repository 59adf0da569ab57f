/**
 * Who wants to be told of runs as they come. Each run is looked at where it stands in its pack; the event of one that
 * passes is written once, whoever gets it, and those who get the same are told together.
 */
import { logLimits } from "../../limits.ts";
import { NumberColumns } from "../packs/number_columns.ts";
import { column, COLUMNS, nothingTold, recordAt, type RunPack, type ToldRun } from "../packs/run_pack.ts";
import { admitsFunction, type RunFilter } from "../run_filter.ts";
import { loggedRun, searchedText } from "../run_record.ts";
import { runEvent } from "../stream/events.ts";
import type { TailedMessage } from "./messages.ts";

/** A tail that a pack may hold something for. */
interface Wanting {
  readonly tail: number;
  readonly filter: RunFilter;
  /** Whether it wants a function's runs, by the function's position in the pack. */
  readonly functions: readonly boolean[];
  /** As the column has it; `null` when all will do. */
  readonly caller: number | null;
  readonly text: string | null;
  /** Positions of its events among those of the message. */
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

  /** What the tails are told of a pack, whose first run has the id; `null`: nobody wants any of it. */
  pick(pack: RunPack, firstId: number): TailedMessage | null {
    const wanting = [...this.#filters].flatMap(([tail, filter]) => wants(pack, { tail, filter }) ?? []);
    if (wanting.length === 0) return null;
    const events = new Picking(pack, firstId).pick(wanting);
    const told = together(wanting);
    return told.length === 0 ? null : { type: "Tailed", lastId: firstId + pack.count - 1, events, told };
  }
}

/** Goes through the runs of a pack. */
class Picking {
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

  pick(wanting: readonly Wanting[]): readonly string[] {
    const byFunction = this.#pack.functions.map((_, fn) => wanting.filter(({ functions }) => functions[fn]));
    for (let row = 0; row < this.#pack.count; row++) {
      const interested = byFunction[this.#columns.at(column.fn, row)] ?? [];
      if (interested.length > 0) this.#offer(row, interested);
    }
    return this.#events;
  }

  #offer(row: number, interested: readonly Wanting[]): void {
    // Written, and made ready to be searched, for the first who needs it.
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

  /** Whether all holds but the function, which does, and the text. */
  #admits({ filter, caller, text }: Wanting, row: number): boolean {
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

  /** Gives its position. */
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

/** `null`: a pack with these functions and callers holds nothing for it. */
function wants(
  { functions, callers, told }: RunPack,
  { tail, filter }: { readonly tail: number; readonly filter: RunFilter },
): Wanting | null {
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

/** Tails that get the same stand together; those that get nothing do not stand there. */
function together(wanting: readonly Wanting[]): TailedMessage["told"] {
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
