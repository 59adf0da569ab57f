/**
 * The simplest server that implements the contract, in memory: numbered entries in lists, queries over them, mutations
 * recorded by session and request id. Messages wait in both directions until the test delivers them, and a cut
 * loses the messages in flight, so a seed decides every order of events.
 */
import type { ClientMessage, ModifyQuerySet, Mutation } from "../../../mod/protocol/client_messages.ts";
import type { MutationResponse, ServerMessage, Transition } from "../../../mod/protocol/server_messages.ts";
import { initialVersion, type StateVersion } from "../../../mod/protocol/state_version.ts";
import type { FakeSocket } from "./fake_socket.ts";

export interface Entry {
  readonly _id: string;
  readonly author: string;
  readonly n: number;
}

interface QueryOnLine {
  readonly udfPath: string;
  readonly list: string;
  /** Entries the client has, for diffs. */
  sent: number;
}

/** One socket as the server sees it. */
export class Line {
  readonly socket: FakeSocket;
  readonly toServer: ClientMessage[] = [];
  readonly toClient: ServerMessage[] = [];
  readonly queries = new Map<number, QueryOnLine>();
  sessionId = "";
  version: StateVersion = initialVersion;

  constructor(socket: FakeSocket) {
    this.socket = socket;
  }
}

export class ModelServer {
  ts = 0;
  readonly lists = new Map<string, Entry[]>();
  readonly lines = new Set<Line>();
  /** How often each mutation ran, by session and request id. */
  readonly runs = new Map<string, number>();
  readonly #recorded = new Map<string, MutationResponse>();

  accept(socket: FakeSocket): Line {
    const line = new Line(socket);
    this.lines.add(line);
    return line;
  }

  /** Loses all messages in flight on a line, and removes the line from the server. */
  cut(line: Line): void {
    this.lines.delete(line);
    line.toServer.length = 0;
    line.toClient.length = 0;
  }

  /** Removes one message from the connection to the server and handles it. */
  handle(line: Line): void {
    const message = line.toServer.shift();
    switch (message?.type) {
      case undefined:
      case "Pong":
        return;
      case "Connect":
        line.sessionId = message.sessionId;
        return;
      case "ModifyQuerySet":
        return this.#modify(line, message);
      case "Mutation":
        return this.#mutate(line, message);
      case "Authenticate":
        return this.#transition(line, { identity: line.version.identity + 1 });
      case "Action":
        line.toClient.push({
          type: "ActionResponse",
          requestId: message.requestId,
          success: true,
          result: null,
          logLines: [],
        });
        return;
    }
  }

  /** Advances a connection to the newest ts. */
  push(line: Line): void {
    if (line.version.ts < this.ts) this.#transition(line, {});
  }

  /** Runs a mutation over HTTP with a name that identifies repetitions. */
  mutateOverHttp(name: string, args: Record<string, unknown>): MutationResponse {
    return this.#once(name, args);
  }

  #modify(line: Line, { newVersion, modifications }: ModifyQuerySet): void {
    const removed: Transition["modifications"] = [];
    for (const modification of modifications) {
      const { queryId } = modification;
      if (modification.type === "Add") {
        const { udfPath, args } = modification;
        line.queries.set(queryId, { udfPath, list: String(args["list"]), sent: -1 });
      } else {
        const sent = line.queries.get(queryId)?.sent ?? -1;
        line.queries.delete(queryId);
        if (sent >= 0) removed.push({ type: "QueryRemoved", queryId });
      }
    }
    this.#transition(line, { querySet: newVersion }, removed);
  }

  #mutate(line: Line, { requestId, args }: Mutation): void {
    line.toClient.push(this.#once(`${line.sessionId} ${requestId}`, args));
  }

  #once(key: string, args: Record<string, unknown>): MutationResponse {
    let response = this.#recorded.get(key);
    if (response === undefined) {
      response = this.#run(Number(key.split(" ")[1]), args);
      this.#recorded.set(key, response);
      this.runs.set(key, (this.runs.get(key) ?? 0) + 1);
    }
    return response;
  }

  #run(requestId: number, args: Record<string, unknown>): MutationResponse {
    const shared = { type: "MutationResponse" as const, requestId, logLines: [] };
    const n = Number(args["n"]);
    if (args["fail"]) return { ...shared, success: false, errorMessage: `failed ${n}`, errorData: null };
    const list = String(args["list"]);
    const entries = this.lists.get(list) ?? [];
    this.ts++;
    const entry = { _id: `e${this.ts}`, author: String(args["author"]), n };
    this.lists.set(list, [...entries, entry]);
    return { ...shared, success: true, result: entry._id, ts: this.ts };
  }

  #transition(line: Line, raised: Partial<StateVersion>, removed: Transition["modifications"] = []): void {
    const startVersion = line.version;
    const endVersion = { ...startVersion, ts: this.ts, ...raised };
    const modifications = [...removed];
    for (const [queryId, query] of line.queries) {
      const entries = this.lists.get(query.list) ?? [];
      if (query.sent === entries.length) continue;
      const update = query.udfPath === "count"
        ? { value: entries.length }
        : query.sent > 0
        ? { diff: { $a: [query.sent, entries.slice(query.sent)] } }
        : { value: entries };
      modifications.push({ type: "QueryUpdated", queryId, ...update, logLines: [] });
      query.sent = entries.length;
    }
    line.version = endVersion;
    line.toClient.push({ type: "Transition", startVersion, endVersion, modifications });
  }
}
