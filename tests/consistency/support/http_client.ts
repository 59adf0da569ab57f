/** A client that calls mutations and queries over HTTP, one at a time, on machines that fail. */
import { HANG_MS, pause } from "../../support/waiting.ts";
import { listsOf, type Recorder, type SentMutation } from "./recorder.ts";
import type { Machine } from "./setup.ts";

const ANSWER_MS = 6_000;
const PAUSE_MS = 30;
const RETRY_MS = 50;
/** Time for the requests that are still unanswered when a run ends. */
const END_MS = HANG_MS;

interface Answer {
  readonly status?: string;
  readonly value?: unknown;
  readonly ts?: number;
  readonly errorData?: { readonly code?: string } | null;
  readonly errorMessage?: string;
}

export class HttpClient {
  readonly #name: string;
  readonly #recorder: Recorder;
  readonly #machines: readonly Machine[];
  readonly #session = crypto.randomUUID();
  #at: number;
  #endAt = Infinity;

  constructor(recorder: Recorder, machines: readonly Machine[], at: number) {
    this.#name = `http client ${at}`;
    this.#recorder = recorder;
    this.#machines = machines;
    this.#at = at;
  }

  /** Sends no more requests after the current one. */
  stop(): void {
    this.#endAt = performance.now() + END_MS;
  }

  /** Calls functions until {@linkcode stop}. */
  async run(): Promise<void> {
    for (let n = 0; this.#endAt === Infinity; n++) {
      const id = `${this.#name} request ${n}`;
      const kind = this.#recorder.pick(4);
      if (kind < 2) await this.#query(id);
      else if (kind === 2) await this.#mutateOnce(this.#recorder.mutation(id));
      else await this.#mutate(this.#recorder.mutation(id), n);
      await pause(this.#recorder.pick(PAUSE_MS));
    }
  }

  get #machine(): Machine {
    const machine = this.#machines[this.#at % this.#machines.length];
    if (machine === undefined) throw new Error("There are no machines");
    return machine;
  }

  async #query(id: string): Promise<void> {
    const keys = this.#recorder.keysToRead();
    const machine = this.#machine;
    const startedAt = this.#recorder.now();
    const answer = await this.#call("query", { path: "lists:read", args: { keys } });
    if (answer.status !== "success") return this.#next(answer);
    const lists = listsOf(keys, answer.value as number[][]);
    this.#recorder.queries.push({ id, machine: machine.name, startedAt, lists });
  }

  /** A mutation without a request id, which is not repeated. */
  async #mutateOnce(sent: SentMutation): Promise<void> {
    const { name } = this.#machine;
    const answer = await this.#call("mutation", { path: "lists:apply", args: { steps: stepsOf(sent) } });
    if (this.#isCommitted(sent, answer)) return;
    const isUnknown = answer.status === undefined || answer.errorData?.code === "outcome_unknown";
    this.#recorder[isUnknown ? "unknown" : "failed"](sent, name);
    this.#next(answer);
  }

  /** A mutation with a request id, which is repeated until its outcome is known. */
  async #mutate(sent: SentMutation, requestId: number): Promise<void> {
    const headers = { "Syncline-Request": `${this.#session} ${requestId}` };
    while (performance.now() < this.#endAt) {
      const { name } = this.#machine;
      const answer = await this.#call(
        "mutation",
        { path: "lists:apply", args: { steps: stepsOf(sent) } },
        headers,
      );
      if (this.#isCommitted(sent, answer)) return;
      const code = answer.errorData?.code ?? "";
      const isKnown = answer.status !== undefined &&
        !["outcome_unknown", "unavailable", "overloaded"].includes(code);
      this.#next(answer);
      if (isKnown) return this.#recorder.failed(sent, name);
      await pause(RETRY_MS);
    }
    this.#recorder.problem(`${sent.id} got no answer`);
    this.#recorder.unknown(sent, this.#machine.name);
  }

  #isCommitted(sent: SentMutation, { status, ts, value }: Answer): boolean {
    if (status !== "success") return false;
    const result = value as (number[] | null)[];
    this.#recorder.committed(sent, { machine: this.#machine.name, ts: ts ?? -1, result });
    return true;
  }

  /** Records a failure and continues with the next machine. */
  #next({ errorData, errorMessage }: Answer): void {
    this.#recorder.error(`HTTP: ${errorData?.code ?? errorMessage ?? "no answer"}`);
    this.#at++;
  }

  /** Returns an empty answer if the connection was lost. */
  async #call(kind: string, body: object, headers: Record<string, string> = {}): Promise<Answer> {
    try {
      const response = await fetch(`http://127.0.0.1:${this.#machine.port}/api/${kind}`, {
        method: "POST",
        // A new connection for each request, which the kernel assigns to one of the processes that share a port.
        headers: { ...headers, connection: "close" },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      return await response.json();
    } catch {
      return {};
    }
  }
}

/** The steps as arguments of `lists:apply`. */
export function stepsOf({ steps }: SentMutation): object[] {
  return steps.map((step) => step.type === "append" ? step : { type: step.type, key: step.key });
}
