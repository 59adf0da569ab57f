/** A recorded run: mutations and queries over lists, and the results that subscriptions showed. */

/** Values of lists by key, oldest first. */
export type Lists = Readonly<Record<string, readonly number[]>>;

/** A step of a mutation. Each appended value is unique in a history. */
export type Step =
  | { readonly type: "append"; readonly key: string; readonly value: number }
  /** `values` is `null` while the response is unknown. */
  | { readonly type: "read"; readonly key: string; readonly values: readonly number[] | null };

/** `failed` means that the server promised a rollback. An `unknown` mutation may have been committed. */
export type MutationOutcome = "committed" | "failed" | "unknown";

export interface Mutation {
  /** Names the client and the request. */
  readonly id: string;
  /** The machine that answered, or was asked last. */
  readonly machine: string;
  readonly steps: readonly Step[];
  readonly startedAt: number;
  /** `Infinity` without an answer. */
  readonly endedAt: number;
  readonly outcome: MutationOutcome;
  /** Set if it was committed. */
  readonly ts: number | null;
}

/** A successful HTTP query over several keys. */
export interface Query {
  readonly id: string;
  readonly machine: string;
  readonly lists: Lists;
  readonly startedAt: number;
}

/** The results on a socket after a Transition. */
export interface View {
  readonly socket: string;
  /** `endVersion.ts` of the Transition. */
  readonly ts: number;
  /** The highest ts that the client had seen when the socket connected; 0 if the server need not wait for it. */
  readonly atLeastTs: number;
  readonly lists: Lists;
}

export interface History {
  readonly mutations: readonly Mutation[];
  readonly queries: readonly Query[];
  /** Views of one socket are in the order in which it showed them. */
  readonly views: readonly View[];
  /** All lists after the last mutation. */
  readonly final: Lists;
}

/** A broken guarantee, with the operations that show it. */
export interface Anomaly {
  readonly name: string;
  readonly text: string;
}

/** Describes an operation in one line. */
export function describe(operation: Mutation | Query): string {
  if (!("steps" in operation)) {
    const lists = Object.entries(operation.lists).map(([key, values]) => `${key}=[${values}]`);
    return `${operation.id} on ${operation.machine}: ${lists.join(" ")}`;
  }
  const steps = operation.steps.map((step) =>
    step.type === "append"
      ? `append(${step.key}, ${step.value})`
      : `read(${step.key})=${step.values === null ? "?" : `[${step.values}]`}`
  );
  const { id, machine, outcome, ts, startedAt, endedAt } = operation;
  const times = `${Math.round(startedAt)}-${Math.round(endedAt)} ms`;
  return `${id} on ${machine}, ${outcome}${ts === null ? "" : ` at ts ${ts}`}, ${times}: ${steps.join(" ")}`;
}
