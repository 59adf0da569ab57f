/**
 * A client that mutates and subscribes over sockets. It repeats unanswered mutations on the next socket, and connects to
 * the machines one after the other.
 */
import type { MutationResponse } from "../../../mod/protocol/server_messages.ts";
import { SyncClient } from "../../durability/support/sync_client.ts";
import { HANG_MS, pause } from "../../support/waiting.ts";
import { stepsOf } from "./http_client.ts";
import { listsOf, type Recorder, type SentMutation } from "./recorder.ts";
import type { Machine } from "./setup.ts";

const IN_FLIGHT_MAX = 2;
const PAUSE_MS = 30;
const RECONNECT_MS = 50;
const CONNECT_MS = 3_000;
/** The client replaces a socket that receives nothing during a wait. */
const SILENT_MS = 6_000;
/** A server waits ten seconds for the ts that a client has seen, and then serves its current state. */
const OBSERVED_MS = 9_000;
/** One pause in this many replaces the subscriptions or cuts the connection. */
const WATCH_ONE_IN = 20;
const CUT_ONE_IN = 300;
const END_MS = HANG_MS;

export class SocketClient {
  readonly #name: string;
  readonly #recorder: Recorder;
  readonly #machines: readonly Machine[];
  readonly #sessionId = crypto.randomUUID();
  readonly #pending = new Map<number, SentMutation>();
  #requests = 0;
  #connections = 0;
  #at: number;
  /** The highest ts in a Transition or response. */
  #observedTs = 0;
  #heardAt = 0;
  #endAt = Infinity;

  constructor(recorder: Recorder, machines: readonly Machine[], at: number) {
    this.#name = `client ${at}`;
    this.#recorder = recorder;
    this.#machines = machines;
    this.#at = at;
  }

  /** Sends no new mutations. */
  stop(): void {
    this.#endAt = performance.now() + END_MS;
  }

  /** Runs until all mutations are answered and delivered after {@linkcode stop}. */
  async run(): Promise<void> {
    let isSettled = false;
    while (!isSettled && performance.now() < this.#endAt) {
      isSettled = await this.#useSocket().catch(() => {
        this.#recorder.error("socket: no connection");
        return false;
      });
      this.#at++;
      await pause(RECONNECT_MS);
    }
    if (!isSettled) this.#recorder.problem(`${this.#name} did not see its own mutations`);
    for (const sent of this.#pending.values()) this.#recorder.unknown(sent, "no machine");
  }

  /** Uses one socket until it is lost. Returns whether all mutations are settled. */
  async #useSocket(): Promise<boolean> {
    const machine = this.#machines[this.#at % this.#machines.length];
    if (machine === undefined) throw new Error("There are no machines");
    const connection = this.#connections++;
    const watched = new Map<number, readonly string[]>();
    const connectedAt = this.#heardAt = performance.now();
    const seenTs = this.#observedTs;
    let isOpen = true;
    const connecting = SyncClient.connect({
      port: machine.port,
      session: { sessionId: this.#sessionId, connectionCount: connection, maxObservedTs: seenTs },
      onResponse: (response) => this.#takeResponse(machine, response),
      onTransition: (client) => {
        this.#heardAt = performance.now();
        const { ts } = client.version;
        this.#observedTs = Math.max(this.#observedTs, ts);
        const lists = Object.assign(
          {},
          ...[...watched].map(([queryId, keys]) => {
            const result = client.results.get(queryId);
            return result === undefined ? {} : listsOf(keys, result as number[][]);
          }),
        );
        const isInTime = performance.now() - connectedAt < OBSERVED_MS;
        const socket = `${this.#name} socket ${connection} of ${machine.name}`;
        this.#recorder.views.push({ socket, ts, atLeastTs: isInTime ? seenTs : 0, lists });
      },
      onClose: (code) => {
        isOpen = false;
        this.#recorder.error(`socket: closed with ${code}`);
      },
    });
    const client = await Promise.race([connecting, pause(CONNECT_MS).then(() => null)]);
    if (client === null) {
      connecting.then((late) => late.cut(), () => {});
      throw new Error("The server does not answer");
    }
    try {
      this.#watch(client, watched);
      for (const [requestId, sent] of this.#pending) this.#send(client, requestId, sent);
      return await this.#work(client, watched, () => isOpen);
    } finally {
      client.cut();
      for (const violation of client.violations) {
        this.#recorder.problem(`${this.#name} on ${machine.name}: ${violation}`);
      }
    }
  }

  async #work(
    client: SyncClient,
    watched: Map<number, readonly string[]>,
    isOpen: () => boolean,
  ): Promise<boolean> {
    while (isOpen()) {
      const isStopped = this.#endAt < Infinity;
      if (isStopped && this.#pending.size === 0 && client.settled) return true;
      if (performance.now() > Math.min(this.#endAt, this.#heardAt + SILENT_MS)) return false;
      if (!isStopped && this.#pending.size < IN_FLIGHT_MAX) {
        const requestId = this.#requests++;
        const sent = this.#recorder.mutation(`${this.#name} request ${requestId}`);
        this.#pending.set(requestId, sent);
        this.#send(client, requestId, sent);
      }
      if (this.#recorder.pick(WATCH_ONE_IN) === 0) this.#watch(client, watched);
      if (!isStopped && this.#recorder.pick(CUT_ONE_IN) === 0) client.cut();
      await pause(this.#recorder.pick(PAUSE_MS));
    }
    return false;
  }

  /** Subscribes to the lists in use instead of others. */
  #watch(client: SyncClient, watched: Map<number, readonly string[]>): void {
    const wanted = this.#recorder.keysToWatch();
    for (const [queryId, keys] of watched) {
      const at = wanted.findIndex((other) => other.join() === keys.join());
      if (at !== -1) {
        wanted.splice(at, 1);
        continue;
      }
      watched.delete(queryId);
      client.unsubscribe(queryId);
    }
    for (const keys of wanted) watched.set(client.subscribe("lists:read", { keys }), keys);
  }

  #send(client: SyncClient, requestId: number, sent: SentMutation): void {
    client.mutate(requestId, "lists:apply", { steps: stepsOf(sent) });
  }

  #takeResponse({ name }: Machine, response: MutationResponse): void {
    this.#heardAt = performance.now();
    const sent = this.#pending.get(response.requestId);
    if (sent === undefined) return this.#recorder.problem(`${this.#name}: a response to nothing`);
    this.#pending.delete(response.requestId);
    if (!response.success) {
      this.#recorder.error(`socket: ${response.errorMessage}`);
      return this.#recorder.failed(sent, name);
    }
    this.#observedTs = Math.max(this.#observedTs, response.ts);
    const result = response.result as (number[] | null)[];
    this.#recorder.committed(sent, { machine: name, ts: response.ts, result });
  }
}
