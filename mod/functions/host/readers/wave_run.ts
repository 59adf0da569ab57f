/** A wave on its way: which of its queries have been answered, and its two promises. */
import { functionLimits } from "../../../limits.ts";
import { type Caller, type QueryAnswer, type QueryBatchRun, unknownReads } from "../../host_port.ts";
import type { Outcome } from "../../outcome.ts";

/** Characters of queries a reader gets at once. A message far larger could not be sent at all. */
const PART_CHARS_MAX = functionLimits.argsCharsMax;

/** What is counted of a query. */
export interface QueryWork {
  readonly cost: string;
  /** The function. */
  readonly path: string;
  readonly turn: string;
  /** Whether it was never known to be quick: it goes behind those that were. */
  readonly untried: boolean;
  /** As the call has it, for another server. */
  readonly caller: Caller | undefined;
}

export interface WaveRunOptions {
  /** The queries' JSON texts on the wire. */
  readonly texts: readonly string[];
  /** Under what is remembered of their cost, and whose turns they take. */
  readonly works: readonly QueryWork[];
  readonly onAnswer: (index: number, answer: QueryAnswer) => void;
  readonly startedAt: number;
  /** Calls `deliver` when what was found at `ts` may be told. */
  readonly arrived: (ts: number, deliver: () => void) => void;
}

export class WaveRun implements QueryBatchRun {
  readonly texts: readonly string[];
  readonly works: readonly QueryWork[];
  /** Whether nothing is known yet of one of them. */
  readonly untried: boolean;
  readonly startedAt: number;
  readonly #onAnswer: (index: number, answer: QueryAnswer) => void;
  readonly #arrived: WaveRunOptions["arrived"];
  readonly #pinned = Promise.withResolvers<number>();
  readonly #done = Promise.withResolvers<void>();
  readonly #answered: Uint8Array;
  /** Times a query was running when its reader was lost. */
  readonly #runsLost = new Map<number, number>();
  #left: number;
  /** Parts of the first deal that have yet to be pinned or lost before `pinned` resolves. */
  #unpinned = 0;
  /** The snapshot of the parts pinned so far. */
  #ts: number | null = null;

  constructor({ texts, works, onAnswer, startedAt, arrived }: WaveRunOptions) {
    this.works = works;
    this.untried = works.some(({ untried }) => untried);
    this.#arrived = arrived;
    this.texts = texts;
    this.startedAt = startedAt;
    this.#onAnswer = onAnswer;
    this.#answered = new Uint8Array(texts.length);
    this.#left = texts.length;
  }

  get pinned(): Promise<number> {
    return this.#pinned.promise;
  }

  get done(): Promise<void> {
    return this.#done.promise;
  }

  /** Called before the first part is handed out: that many have to be pinned. */
  dealt(parts: number): void {
    this.#unpinned = parts;
  }

  /** A part has its snapshot. */
  partPinned(part: Part, ts: number): void {
    this.#ts ??= ts;
    this.#settled(part);
  }

  /** A part was lost before it had a snapshot. What replaces it is waited for only if nothing else of the wave is pinned. */
  partLost(part: Part): void {
    this.#settled(part);
  }

  #settled({ first }: Part): void {
    if (first) this.#unpinned--;
    if (this.#unpinned <= 0 && this.#ts !== null) this.#pinned.resolve(this.#ts);
  }

  has(index: number): boolean {
    return this.#answered[index] === 1;
  }

  /** The first answer of a query counts; later ones, from a reader whose work was taken over, are dropped. */
  answer(index: number, answer: QueryAnswer): void {
    if (this.has(index)) return;
    this.#answered[index] = 1;
    this.#arrived(answer.ts, () => {
      this.#left--;
      this.#onAnswer(index, answer);
      if (this.#left > 0) return;
      this.#pinned.resolve(this.#ts ?? answer.ts);
      this.#done.resolve();
    });
  }

  /** Answers a query whose run did not end by itself. */
  cutShort(index: number, options: { readonly outcome: Outcome; readonly ts: number }): void {
    const { outcome, ts } = options;
    // The narrowest scope: nobody else's subscription takes part in a failure that may be this caller's alone.
    const answer = {
      readSet: unknownReads,
      scope: "session",
      nondeterministic: true,
      durationMs: 0,
    } as const;
    this.answer(index, { outcome, ts, ...answer });
  }

  /** Counts a run during which the reader was lost; gives the count. */
  runLost(index: number): number {
    const count = (this.#runsLost.get(index) ?? 0) + 1;
    this.#runsLost.set(index, count);
    return count;
  }
}

/** Queries of a wave that one reader runs, by their positions in the wave. */
export interface Part {
  readonly run: WaveRun;
  readonly indices: readonly number[];
  /** Whether it stands as it was dealt first, and not for what a lost or slow reader left. */
  readonly first: boolean;
  /** Known to be slow: it never takes the last reader. */
  readonly slow?: boolean;
}

/** The queries of a part as they stand on the wire, with commas between them. */
export function queriesText({ run, indices }: Part): string {
  return indices.map((index) => run.texts[index]).join(",");
}

/** A part with others of its wave behind it. */
export function joined(part: Part, others: readonly Part[]): Part {
  if (others.length === 0) return part;
  return { ...part, indices: [...part.indices, ...others.flatMap(({ indices }) => indices)] };
}

/** What is left of a part, `null` if nothing. */
export function unansweredOf(part: Part): Part | null {
  const left = part.indices.filter((index) => !part.run.has(index));
  return left.length === 0 ? null : { ...part, indices: left };
}

/** A part of its own for each query. */
export function singly({ indices, ...part }: Part): Part[] {
  return indices.map((index) => ({ ...part, indices: [index] }));
}

/**
 * Deals queries to readers in turn, so that neighbours, which are often alike, spread evenly; those of which least is known
 * come last. The first parts are one for each reader; what would make a part's message too large follows in further ones,
 * which run later.
 */
export function deal(run: WaveRun, readers: number): Part[] {
  const dealt: number[][] = Array.from({ length: readers }, () => []);
  const chars = new Array<number>(readers).fill(0);
  const later: number[][] = [];
  let laterChars = Infinity;
  for (const [at, index] of quickFirst(run.works).entries()) {
    const { length } = run.texts[index] ?? "";
    const reader = at % readers;
    const part = dealt[reader];
    const had = chars[reader] ?? 0;
    if (part !== undefined && (part.length === 0 || had + length <= PART_CHARS_MAX)) {
      part.push(index);
      chars[reader] = had + length;
      continue;
    }
    if (laterChars + length > PART_CHARS_MAX) {
      later.push([]);
      laterChars = 0;
    }
    later.at(-1)?.push(index);
    laterChars += length;
  }
  return [
    ...dealt.map((indices) => ({ run, indices, first: true })),
    ...later.map((indices) => ({ run, indices, first: false })),
  ];
}

function quickFirst(works: readonly QueryWork[]): number[] {
  const untried: number[] = [];
  const quick: number[] = [];
  for (const [index, work] of works.entries()) (work.untried ? untried : quick).push(index);
  return quick.concat(untried);
}
