/**
 * A model client: behaves as the contract requires and checks all guarantees for clients against the
 * oracle. Throws at the first violation.
 */
import assert from "node:assert/strict";
import { deepEqual } from "../../../mod/protocol/deep_equal.ts";
import { applyDiff } from "../../../mod/protocol/apply_diff.ts";
import type { QuerySetModification } from "../../../mod/protocol/client_messages.ts";
import type {
  MutationResponse,
  QueryFailed,
  QueryUpdated,
  ServerMessage,
  Transition,
} from "../../../mod/protocol/server_messages.ts";
import { initialVersion, type StateVersion } from "../../../mod/protocol/state_version.ts";
import type { Hub } from "../../../mod/sync/hub.ts";
import type { Answer, Oracle } from "./oracle.ts";
import { identityOf } from "./sim_authenticator.ts";
import { SimSocket } from "./sim_socket.ts";

export interface ClientOptions {
  /** The default server to connect to. */
  readonly hub?: Hub;
  readonly oracle: Oracle;
  readonly sessionId: string;
  readonly diffs: boolean;
  /** Whether it sends the newest ts it has seen with each Connect. */
  readonly reportsObserved?: boolean;
  /**
   * Whether an answer may overtake another one, like on a server that waits for commits: an earlier answer that is requested
   * again may then be followed by older ones.
   */
  readonly overtaking?: boolean;
  /** Called with a failure of a mutation that has no record so far. Returns whether the server may answer that. */
  readonly mayFail?: (
    replay: { readonly sessionId: string; readonly requestId: number; readonly principal: string | null },
    errorData: unknown,
  ) => boolean;
}

interface Subscription {
  readonly udfPath: string;
  readonly args: Record<string, unknown>;
}

interface OpenMutation {
  readonly requestId: number;
  readonly udfPath: string;
  readonly args: Record<string, unknown>;
}

/** A message that moves the version, in the order sent. */
type SentStep =
  | { readonly kind: "querySet"; readonly modifications: readonly QuerySetModification[] }
  | { readonly kind: "identity"; readonly token: string | null };

/** The state of a connection; reset for each socket. */
interface Connection {
  readonly socket: SimSocket;
  version: StateVersion;
  /** Queries live at the present version. */
  readonly live: Map<number, Subscription>;
  readonly results: Map<number, Answer>;
  readonly steps: SentStep[];
  /** Tokens by identity version. */
  readonly tokens: (string | null)[];
  /** Token of new calls. */
  token: string | null;
  querySet: number;
  identity: number;
  /** Calls sent and not answered, in order. */
  readonly calls: {
    readonly requestId: number;
    readonly kind: "Mutation" | "Action";
    readonly token: string | null;
  }[];
  owedTs: number | null;
  /** Set with a FatalError or AuthError: nothing may follow. */
  lastWords: string | null;
  /** FatalErrors that are the client's own fault. */
  misbehaved: boolean;
  /** The ts of the newest state that its client had seen or written before. */
  readonly observedTs: number;
  /** The newest commit that its server knew when it connected. */
  readonly connectedTs: number;
  /** Whether its state may be older than its client has seen, because the server has waited until the timeout. */
  readonly older: () => boolean;
}

export class SimClient {
  readonly options: ClientOptions;
  /** Queries it wants, by id. */
  readonly wanted = new Map<number, Subscription>();
  /** Mutations without an answer, in the order first sent. */
  readonly mutations = new Map<number, OpenMutation>();
  /** Mutations that it has sent several times on one socket. */
  readonly repeated = new Set<number>();
  token: string | null = null;
  connection: Connection | null = null;
  /** Whether it answers Pings. */
  answersPings = true;
  transitions = 0;
  /** The newest commit that it received, or that one of its mutations made, on any socket. */
  observedTs = 0;
  #nextQueryId = 0;
  #nextRequestId = 0;
  #connections = 0;

  constructor(options: ClientOptions) {
    this.options = options;
  }

  /** Connects and resumes the state of an earlier socket. */
  connect(
    hub = this.options.hub,
    { older = () => false }: { readonly older?: () => boolean } = {},
  ): void {
    if (hub === undefined) throw new Error("The client does not know where to connect");
    const socket = new SimSocket(hub);
    const connection: Connection = {
      socket,
      version: initialVersion,
      live: new Map(),
      results: new Map(),
      steps: [],
      tokens: [null],
      token: null,
      querySet: 0,
      identity: 0,
      calls: [],
      owedTs: null,
      lastWords: null,
      misbehaved: false,
      observedTs: this.observedTs,
      connectedTs: hub.ts,
      older,
    };
    this.connection = connection;
    this.#report({
      type: "Connect",
      sessionId: this.options.sessionId,
      connectionCount: this.#connections++,
      lastCloseReason: null,
      clientVersion: "sim",
      ...(this.options.diffs && { features: ["diffs"] }),
      ...(this.options.reportsObserved !== false && { maxObservedTs: this.observedTs }),
    });
    if (this.token !== null) this.authenticate(this.token);
    const adds = [...this.wanted].map(([queryId, query]) => ({ type: "Add" as const, queryId, ...query }));
    if (adds.length > 0) this.#modify(adds);
    for (const mutation of this.mutations.values()) this.#send(mutation);
  }

  drop(): void {
    this.connection?.socket.drop();
    this.connection = null;
  }

  get open(): boolean {
    return this.connection !== null && this.connection.lastWords === null;
  }

  add(queries: readonly Subscription[]): void {
    this.#modify(queries.map((query) => {
      const queryId = this.#nextQueryId++;
      this.wanted.set(queryId, query);
      return { type: "Add" as const, queryId, ...query };
    }));
  }

  remove(queryIds: readonly number[]): void {
    for (const queryId of queryIds) this.wanted.delete(queryId);
    this.#modify(queryIds.map((queryId) => ({ type: "Remove" as const, queryId })));
  }

  /** Adds and removes one id in one message. */
  addAndRemove(query: Subscription): void {
    const queryId = this.#nextQueryId++;
    this.#modify([{ type: "Add", queryId, ...query }, { type: "Remove", queryId }]);
  }

  mutate(udfPath: string, args: Record<string, unknown>): void {
    const mutation = { requestId: this.#nextRequestId++, udfPath, args };
    this.mutations.set(mutation.requestId, mutation);
    this.#send(mutation);
  }

  /** Sends a mutation again that has been answered or not: it must not run twice. */
  repeat(mutation: OpenMutation): void {
    const { calls, token } = this.connection ?? { calls: [], token: null };
    // Answers of copies with other identities are indistinguishable.
    if (calls.some((call) => call.requestId === mutation.requestId && call.token !== token)) return;
    this.repeated.add(mutation.requestId);
    if (!this.mutations.has(mutation.requestId)) this.mutations.set(mutation.requestId, mutation);
    this.#send(mutation);
  }

  act(args: Record<string, unknown>): void {
    const requestId = this.#nextRequestId++;
    const connection = this.connection;
    connection?.calls.push({ requestId, kind: "Action", token: connection.token });
    this.#report({ type: "Action", requestId, udfPath: "echo", args });
  }

  authenticate(token: string | null): void {
    const connection = this.connection;
    if (connection === null) return;
    this.token = token;
    this.#report({ type: "Authenticate", baseVersion: connection.identity++, token });
    connection.token = token;
    connection.tokens.push(token);
    connection.steps.push({ kind: "identity", token });
  }

  misbehave(frame: string): void {
    if (this.connection === null) return;
    this.connection.misbehaved = true;
    this.connection.socket.push(frame);
  }

  /** Reads up to `count` frames. */
  read(count: number): void {
    const connection = this.connection;
    if (connection === null) return;
    for (const text of connection.socket.takeAtClient(count)) this.#receive(connection, text);
    const { socket } = connection;
    if (socket.closedWith !== null && !socket.busy) this.drop();
  }

  /** Whether the server has confirmed this session, and nothing else is in transit. */
  knownIn(sessionId: string): boolean {
    const connection = this.connection;
    return connection !== null && connection.socket.closedWith === null && connection.steps.length === 0 &&
      identityOf(connection.token).sessionId === sessionId;
  }

  /** Its session has just ended: the AuthError is its last message. */
  checkSessionEnded(): void {
    const { socket } = this.connection ?? {};
    assert.equal(socket?.newestFrame, '{"type":"AuthError","error":"session has ended"}');
    assert.notEqual(socket?.closedWith, null, "the socket of an ended session is open");
  }

  /** Checks that no result is missing when all steps are done. */
  checkAtRest(): void {
    const connection = this.connection;
    if (connection === null || connection.lastWords !== null) return;
    assert.equal(connection.socket.closedWith, null, "closed without a word");
    assert.deepEqual(connection.steps, [], "a ModifyQuerySet or Authenticate without its Transition");
    assert.deepEqual(connection.calls, [], "a call without an answer");
    assert.equal(connection.owedTs, null, "a Transition is owed");
    assert.deepEqual([...connection.live.keys()], [...this.wanted.keys()], "the query set");
    this.#checkResults(connection, this.options.oracle.ts);
  }

  #modify(modifications: readonly QuerySetModification[]): void {
    const connection = this.connection;
    if (connection === null) return;
    const baseVersion = connection.querySet++;
    connection.steps.push({ kind: "querySet", modifications });
    this.#report({ type: "ModifyQuerySet", baseVersion, newVersion: connection.querySet, modifications });
  }

  #send({ requestId, udfPath, args }: OpenMutation): void {
    const connection = this.connection;
    connection?.calls.push({ requestId, kind: "Mutation", token: connection.token });
    this.#report({ type: "Mutation", requestId, udfPath, args });
  }

  #report(message: unknown): void {
    this.connection?.socket.push(JSON.stringify(message));
  }

  #receive(connection: Connection, text: string): void {
    const message = JSON.parse(text) as ServerMessage;
    assert.equal(connection.lastWords, null, `${message.type} after ${connection.lastWords}`);
    switch (message.type) {
      case "Transition":
        return this.#apply(connection, message);
      case "MutationResponse":
        return this.#answered(connection, message);
      case "ActionResponse": {
        this.#takeCall(connection, { requestId: message.requestId, kind: "Action" });
        return;
      }
      case "Ping":
        if (this.answersPings) this.#report({ type: "Pong" });
        return;
      case "FatalError":
        connection.lastWords = message.error;
        assert.ok(
          connection.misbehaved || /^no message from|^a frame took more|does not read/.test(message.error),
          `an unexpected FatalError: ${message.error}`,
        );
        return;
      case "AuthError":
        connection.lastWords = message.error;
        this.token = null;
        return;
      case "RoomJoined":
      case "RoomState":
      case "RoomChanged":
      case "RoomRefused":
        return assert.fail(`a client without rooms received ${message.type}`);
      default:
        message satisfies never;
    }
  }

  #takeCall(
    connection: Connection,
    { requestId, kind }: { readonly requestId: number; readonly kind: "Mutation" | "Action" },
  ): string | null {
    const place = connection.calls.findIndex((call) => call.kind === kind && call.requestId === requestId);
    assert.ok(place >= 0, `an answer to ${kind} ${requestId}, which is not awaited`);
    const first = connection.calls.findIndex((call) => call.kind === kind);
    const { overtaking = false } = this.options;
    if (kind === "Mutation" && !overtaking) {
      assert.equal(place, first, "mutations are answered in the order sent");
    }
    const [call] = connection.calls.splice(place, 1);
    return call?.token ?? null;
  }

  #answered(connection: Connection, response: MutationResponse): void {
    const { requestId } = response;
    const token = this.#takeCall(connection, { requestId, kind: "Mutation" });
    this.mutations.delete(requestId);
    const { oracle, sessionId, mayFail } = this.options;
    const record = oracle.recorded({ sessionId, requestId }, identityOf(token));
    // Of several copies on one socket one may be refused before another one runs.
    if (!response.success && (record === undefined || this.repeated.has(requestId))) {
      const { principal } = identityOf(token);
      if (mayFail?.({ sessionId, requestId, principal }, response.errorData) === true) return;
    }
    assert.ok(record !== undefined, `mutation ${requestId} was answered before it ran`);
    if (response.success) {
      assert.deepEqual(
        { ok: true, value: response.result },
        record.answer,
        `answer to mutation ${requestId}`,
      );
      assert.equal(response.ts, record.ts, `ts of mutation ${requestId}`);
      connection.owedTs = Math.max(connection.owedTs ?? 0, response.ts);
      this.observedTs = Math.max(this.observedTs, response.ts);
    } else {
      const { errorMessage, errorData } = response;
      assert.deepEqual(
        { ok: false, errorMessage, errorData },
        record.answer,
        `error of mutation ${requestId}`,
      );
    }
  }

  #apply(connection: Connection, transition: Transition): void {
    this.transitions++;
    const { startVersion, endVersion, modifications } = transition;
    assert.deepEqual(startVersion, connection.version, "a Transition starts at the version the client has");
    assert.ok(endVersion.ts >= startVersion.ts, "ts went back");
    assert.ok(
      endVersion.ts >= connection.observedTs || connection.older(),
      "a new socket shows an older state than was seen",
    );
    assert.ok(
      endVersion.ts >= connection.connectedTs,
      "a new socket shows an older state than the server had when it connected",
    );
    this.observedTs = Math.max(this.observedTs, endVersion.ts);
    const step = this.#takeStep(connection, endVersion);
    connection.version = endVersion;
    const removed = new Set<number>();
    const isNew = new Set<number>();
    for (const modification of step?.kind === "querySet" ? step.modifications : []) {
      const { queryId } = modification;
      if (modification.type === "Remove") {
        if (!isNew.delete(queryId) && connection.live.delete(queryId)) removed.add(queryId);
        connection.live.delete(queryId);
      } else {
        connection.live.set(queryId, { udfPath: modification.udfPath, args: modification.args });
        isNew.add(queryId);
      }
    }
    for (const item of modifications) {
      if (item.type === "QueryRemoved") {
        assert.ok(removed.delete(item.queryId), `QueryRemoved of ${item.queryId}, which was not removed`);
        connection.results.delete(item.queryId);
      } else {
        assert.ok(connection.live.has(item.queryId), `a result of ${item.queryId}, which is not live`);
        this.#show(connection, item);
      }
    }
    assert.deepEqual([...removed], [], "a removed query without QueryRemoved");
    this.#checkResults(connection, endVersion.ts);
    if (connection.owedTs !== null && endVersion.ts >= connection.owedTs) connection.owedTs = null;
  }

  #takeStep(connection: Connection, end: StateVersion): SentStep | undefined {
    const { version } = connection;
    const moved = end.querySet - version.querySet + (end.identity - version.identity);
    if (moved === 0) return undefined;
    assert.equal(moved, 1, "each ModifyQuerySet and each Authenticate has a Transition of its own");
    const step = connection.steps.shift();
    assert.equal(step?.kind, end.querySet > version.querySet ? "querySet" : "identity", "steps out of order");
    return step;
  }

  #show(connection: Connection, item: QueryUpdated | QueryFailed): void {
    const before = connection.results.get(item.queryId);
    let answer: Answer;
    if (item.type === "QueryFailed") {
      answer = { ok: false, errorMessage: item.errorMessage, errorData: item.errorData };
    } else if ("diff" in item) {
      assert.ok(this.options.diffs, "a diff nobody asked for");
      assert.ok(before?.ok, "a diff without a base");
      answer = { ok: true, value: applyDiff(before.value, item.diff) };
    } else {
      answer = { ok: true, value: item.value };
    }
    assert.ok(before === undefined || !deepEqual(before, answer), `an unchanged result of ${item.queryId}`);
    assert.deepEqual(item.logLines, []);
    connection.results.set(item.queryId, answer);
  }

  /** All live queries must match the oracle at one ts. */
  #checkResults(connection: Connection, ts: number): void {
    const identity = identityOf(connection.tokens[connection.version.identity] ?? null);
    for (const [queryId, { udfPath, args }] of connection.live) {
      const shown = connection.results.get(queryId);
      const expected = this.options.oracle.query({ udfPath, args, identity }, ts);
      if (shown !== undefined && deepEqual(shown, expected)) continue;
      assert.deepEqual(
        shown,
        expected,
        `query ${queryId}, ${udfPath} ${JSON.stringify(args)} of ${identity.principal}, at ts ${ts}`,
      );
    }
    assert.equal(connection.results.size, connection.live.size, "results of queries that are not live");
  }
}
