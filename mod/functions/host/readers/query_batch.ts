/** A query batch in progress: answered queries, and its two promises. */
import { functionLimits } from "../../../limits.ts";
import { type Caller, type QueryAnswer, type QueryBatchRun, unknownReads } from "../../host_port.ts";
import type { Outcome } from "../../outcome.ts";

/** Characters of queries sent to a reader at once. Much larger messages cannot be sent. */
const PART_CHARS_MAX = functionLimits.argsCharsMax;

/** Accounting data of a query. */
export interface QueryWork {
  readonly cost: string;
  readonly path: string;
  readonly queueKey: string;
  /** Whether it was never fast: it runs after those that were. */
  readonly untried: boolean;
  readonly caller: Caller | undefined;
  /** See `QueryCall`. */
  readonly base: Outcome | null | undefined;
}

export interface QueryBatchRunOptions {
  readonly texts: readonly string[];
  /** Cost keys and queue keys. */
  readonly works: readonly QueryWork[];
  readonly onAnswer: (index: number, answer: QueryAnswer) => void;
  readonly startedAt: number;
  /** Calls `deliver` when an answer of snapshot `ts` may be published. */
  readonly arrived: (ts: number, deliver: () => void) => void;
}

export class QueryBatch implements QueryBatchRun {
  readonly texts: readonly string[];
  readonly works: readonly QueryWork[];
  /** Whether the cost of one of them is unknown. */
  readonly untried: boolean;
  readonly startedAt: number;
  readonly #onAnswer: (index: number, answer: QueryAnswer) => void;
  readonly #arrived: QueryBatchRunOptions["arrived"];
  readonly #pinned = Promise.withResolvers<number>();
  readonly #done = Promise.withResolvers<void>();
  readonly #answered: Uint8Array;
  /** Times each query was running when its reader was lost. */
  readonly #runsLost = new Map<number, number>();
  #left: number;
  /** Initial parts that must be pinned or lost before `pinned` resolves. */
  #unpinned = 0;
  /** Snapshot of the parts pinned so far. */
  #ts: number | null = null;

  constructor({ texts, works, onAnswer, startedAt, arrived }: QueryBatchRunOptions) {
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

  /** Sets the number of initial parts, before the first is assigned. */
  dealt(parts: number): void {
    this.#unpinned = parts;
  }

  /** Records a part's snapshot. */
  partPinned(part: Part, ts: number): void {
    this.#ts ??= ts;
    this.#settled(part);
  }

  /** Records a part lost before it had a snapshot. Its replacement is awaited only if no other part is pinned. */
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

  /** Answers a query. Later answers, from a reader whose work was taken over, are dropped. */
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

  cutShort(index: number, result: Pick<QueryAnswer, "outcome" | "ts" | "version">): void {
    // The narrowest scope: the failure may be specific to this caller.
    const answer = {
      readSet: unknownReads,
      scope: "session",
      nondeterministic: true,
      durationMs: 0,
    } as const;
    this.answer(index, { ...result, ...answer });
  }

  /** Counts a run during which the reader was lost. Returns the count. */
  runLost(index: number): number {
    const count = (this.#runsLost.get(index) ?? 0) + 1;
    this.#runsLost.set(index, count);
    return count;
  }
}

/** Queries of a batch that one reader runs, by position in the batch. */
export interface Part {
  readonly run: QueryBatch;
  readonly indices: readonly number[];
  /** Whether it is an initial part, not the remainder of a lost or slow reader. */
  readonly first: boolean;
  /** Known to be slow: it never takes the last free reader. */
  readonly slow?: boolean;
}

/** The serialized queries of a part, separated by commas. */
export function queriesText({ run, indices }: Part): string {
  return indices.map((index) => run.texts[index]).join(",");
}

export function joined(part: Part, others: readonly Part[]): Part {
  if (others.length === 0) return part;
  return { ...part, indices: [...part.indices, ...others.flatMap(({ indices }) => indices)] };
}

/** The unanswered rest of a part, `null` if empty. */
export function unansweredOf(part: Part): Part | null {
  const left = part.indices.filter((index) => !part.run.has(index));
  return left.length === 0 ? null : { ...part, indices: left };
}

export function splitByQuery({ indices, ...part }: Part): Part[] {
  return indices.map((index) => ({ ...part, indices: [index] }));
}

/** Distributes queries round robin (neighbors cost alike), unknown cost last, and parts above the message size later. */
export function distribute(run: QueryBatch, readers: number): Part[] {
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
