/**
 * A client of `/api/sync` that applies every Transition as the contract says and records each violation of the
 * contract. It does not reconnect, because the tests decide which requests to repeat.
 */
import { RawWebSocket } from "../../support/processes/raw_websocket.ts";
import { initialVersion, sameVersion, type StateVersion } from "../../../mod/protocol/state_version.ts";
import type { MutationResponse, ServerMessage, Transition } from "../../../mod/protocol/server_messages.ts";

export interface SyncClientOptions {
  readonly port: number;
  /** `null` for a client that never sends Connect: its mutations are not de-duplicated. */
  readonly session: {
    readonly sessionId: string;
    readonly connectionCount: number;
    readonly maxObservedTs?: number;
  } | null;
  readonly onResponse?: (response: MutationResponse) => void;
  /** Called after each Transition was applied. */
  readonly onTransition?: (client: SyncClient, transition: Transition) => void;
  readonly onClose?: (code: number) => void;
}

export class SyncClient implements AsyncDisposable {
  /** Violations of the contract, in order. */
  readonly violations: string[] = [];
  /** The result of each query, of those that have one. */
  readonly results = new Map<number, unknown>();
  version: StateVersion = initialVersion;
  readonly #options: SyncClientOptions;
  readonly #live = new Set<number>();
  #socket: RawWebSocket | null = null;
  #querySet = 0;
  #nextQueryId = 0;
  /** ts of responses whose effects are in no Transition yet. */
  #owedTs = 0;

  private constructor(options: SyncClientOptions) {
    this.#options = options;
  }

  static async connect(options: SyncClientOptions): Promise<SyncClient> {
    const client = new SyncClient(options);
    const socket = client.#socket = await RawWebSocket.connect({
      port: options.port,
      path: "/api/sync",
      onText: (text) => client.#onMessage(JSON.parse(text)),
      onClose: (code) => options.onClose?.(code),
    });
    if (options.session !== null) {
      socket.send(
        JSON.stringify({ type: "Connect", ...options.session, lastCloseReason: null, clientVersion: "test" }),
      );
    }
    return client;
  }

  /** Whether a Transition has reached the ts of every answered mutation and every change of the query set. */
  get settled(): boolean {
    return this.version.ts >= this.#owedTs && this.version.querySet === this.#querySet;
  }

  mutate(requestId: number, udfPath: string, args: Record<string, unknown>): void {
    this.#socket?.send(JSON.stringify({ type: "Mutation", requestId, udfPath, args }));
  }

  /** Adds a query and returns its id. */
  subscribe(udfPath: string, args: Record<string, unknown>): number {
    const queryId = this.#nextQueryId++;
    this.#live.add(queryId);
    this.#modify({ type: "Add", queryId, udfPath, args });
    return queryId;
  }

  unsubscribe(queryId: number): void {
    this.#live.delete(queryId);
    this.#modify({ type: "Remove", queryId });
  }

  #modify(modification: Record<string, unknown>): void {
    const baseVersion = this.#querySet++;
    this.#socket?.send(JSON.stringify({
      type: "ModifyQuerySet",
      baseVersion,
      newVersion: this.#querySet,
      modifications: [modification],
    }));
  }

  #onMessage(message: ServerMessage): void {
    switch (message.type) {
      case "Transition":
        return this.#apply(message);
      case "MutationResponse":
        if (message.success) this.#owedTs = Math.max(this.#owedTs, message.ts);
        return this.#options.onResponse?.(message);
      case "Ping":
        return this.#socket?.send('{"type":"Pong"}');
      case "ActionResponse":
      case "FatalError":
      case "AuthError":
      case "RoomJoined":
      case "RoomState":
      case "RoomChanged":
      case "RoomRefused":
        this.violations.push(`unexpected ${JSON.stringify(message)}`);
        return;
      default:
        message satisfies never;
    }
  }

  #apply(transition: Transition): void {
    const { startVersion, endVersion } = transition;
    if (!sameVersion(startVersion, this.version)) {
      this.violations.push(`starts at ${JSON.stringify(startVersion)}, not ${JSON.stringify(this.version)}`);
    }
    if (endVersion.ts < startVersion.ts) this.violations.push(`goes back: ${JSON.stringify(endVersion)}`);
    for (const modification of transition.modifications) {
      switch (modification.type) {
        case "QueryUpdated":
          this.results.set(modification.queryId, modification.value);
          break;
        case "QueryRemoved":
          this.results.delete(modification.queryId);
          break;
        case "QueryFailed":
          this.violations.push(`failed: ${modification.errorMessage}`);
          break;
        default:
          modification satisfies never;
      }
    }
    this.version = endVersion;
    if (endVersion.querySet === this.#querySet) {
      for (const queryId of this.#live) {
        if (!this.results.has(queryId)) this.violations.push(`query ${queryId} has no result`);
      }
    }
    this.#options.onTransition?.(this, transition);
  }

  /** Drops the connection as a lost network would. */
  cut(): void {
    this.#socket?.cut();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#socket?.close();
  }
}
