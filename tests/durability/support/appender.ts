/**
 * A client that appends to the log and keeps several appends in flight. It records requests and responses across sockets and
 * servers.
 */
import type { MutationResponse } from "../../../mod/protocol/server_messages.ts";
import { SyncClient } from "./sync_client.ts";

const IN_FLIGHT = 3;

export interface AppenderOptions {
  /** Without a session nothing of it is de-duplicated, so nothing can be sent again. */
  readonly session: boolean;
  /** Returns the pause after an answer; then at most one append is in flight. Default: no pauses. */
  readonly pauseMs?: () => number;
}

interface Acknowledged {
  readonly result: string;
  readonly ts: number;
}

export class Appender {
  readonly writer: number;
  readonly violations: string[] = [];
  /** Answers by sequence number, which is also the request id. */
  readonly acknowledged = new Map<number, Acknowledged>();
  /** Sequence numbers sent so far: 0 up to here. */
  sent = 0;
  /** Newest ts in an answer. */
  newestTs = 0;
  /** Sockets that the other side closed. */
  closes = 0;
  /** Called after each Transition of the open socket, and after each first answer. */
  onChange: (change: { readonly sequence: number; readonly ts: number } | null) => void = () => {};
  readonly #sessionId: string | null;
  readonly #pauseMs: (() => number) | null;
  readonly #awaited = new Set<number>();
  #pausing: ReturnType<typeof setTimeout> | undefined;
  #connections = 0;
  #client: SyncClient | null = null;
  #appending = false;

  constructor(writer: number, options: AppenderOptions) {
    this.writer = writer;
    this.#pauseMs = options.pauseMs ?? null;
    this.#sessionId = options.session ? crypto.randomUUID() : null;
  }

  /** Sent and not answered. */
  get unanswered(): number[] {
    return Array.from({ length: this.sent }, (_, sequence) => sequence).filter((sequence) =>
      !this.acknowledged.has(sequence)
    );
  }

  /** Requests of this connection that still await their answer, sent again ones included. */
  get awaited(): number {
    return this.#awaited.size;
  }

  get client(): SyncClient {
    if (this.#client === null) throw new Error("The appender is not connected");
    return this.#client;
  }

  async connect(port: number): Promise<void> {
    this.#awaited.clear();
    const client = this.#client = await SyncClient.connect({
      port,
      session: this.#sessionId === null
        ? null
        : { sessionId: this.#sessionId, connectionCount: this.#connections++ },
      onResponse: (response) => this.#onResponse(response),
      onTransition: () => this.onChange(null),
      onClose: () => {
        if (this.#client === client) this.closes++;
      },
    });
  }

  /** Sends a sequence number again, with the request id it had. */
  resend(sequence: number): void {
    this.#send(sequence);
  }

  /** Appends until {@linkcode rest}. */
  append(): void {
    this.#appending = true;
    const inFlight = this.#pauseMs === null ? IN_FLIGHT : 1;
    while (this.#awaited.size < inFlight) this.#send(this.sent++);
  }

  /** Sends nothing new; appends in flight continue. */
  rest(): void {
    this.#appending = false;
    clearTimeout(this.#pausing);
  }

  async disconnect(): Promise<void> {
    this.rest();
    const client = this.#client;
    this.#client = null;
    if (client === null) return;
    this.violations.push(...client.violations);
    client.cut();
    await client[Symbol.asyncDispose]();
  }

  #send(sequence: number): void {
    this.#awaited.add(sequence);
    this.client.mutate(sequence, "log:append", { writer: this.writer, sequence });
  }

  #onResponse(response: MutationResponse): void {
    const sequence = response.requestId;
    if (!this.#awaited.delete(sequence)) this.violations.push(`answered twice: ${sequence}`);
    if (!response.success) {
      this.violations.push(`failed: ${response.errorMessage}`);
      return;
    }
    const answer = { result: JSON.stringify(response.result), ts: response.ts };
    this.newestTs = Math.max(this.newestTs, response.ts);
    const before = this.acknowledged.get(sequence);
    if (before !== undefined && (before.result !== answer.result || before.ts !== answer.ts)) {
      this.violations.push(
        `sequence ${sequence} was answered ${JSON.stringify(before)}, then ${JSON.stringify(answer)}`,
      );
    }
    this.acknowledged.set(sequence, answer);
    if (before === undefined) this.onChange({ sequence, ts: response.ts });
    if (!this.#appending) return;
    if (this.#pauseMs === null) this.#send(this.sent++);
    else this.#pausing = setTimeout(() => this.#send(this.sent++), this.#pauseMs());
  }
}
