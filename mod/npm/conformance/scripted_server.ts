/** A server that sends the frames of a scenario, and checks the rules that each frame of a client has to follow. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { isDeepStrictEqual } from "node:util";
// @ts-types="./ws.d.ts"
import { type WebSocket, WebSocketServer } from "ws";
import { filled, type Json, mismatch, type Variables } from "./frames.ts";
import { AsyncQueue } from "./async_queue.ts";

type Frame = Readonly<Record<string, Json>>;

/** A mutation or action. A client repeats a mutation unchanged. */
interface Call {
  readonly call: Json;
  /** The last connection on which the client sent it. */
  connection: Connection;
  isAnswered: boolean;
}

/** The requests of the client on all its connections. */
interface Requests {
  /** Path and arguments by query id. */
  readonly queries: Map<Json, Json>;
  readonly calls: Map<Json, Call>;
}

/** Frame types of clients that scenarios expect. Others, such as those of rooms, are passed over. */
const CHECKED = new Set(["Connect", "ModifyQuerySet", "Authenticate", "Mutation", "Action", "Pong"]);

const ZERO: Json = { querySet: 0, identity: 0, ts: 0 };

/** One connection of the client. */
class Connection {
  readonly frames = new AsyncQueue<Frame>();
  readonly closed = new AsyncQueue<true>();
  /** Answers to the last WebSocket ping. */
  readonly pongs = new AsyncQueue<true>();
  readonly socket: WebSocket;
  readonly #variables: Variables;
  readonly #requests: Requests;
  readonly #fault: (reason: string) => void;
  #connect: Frame | null = null;
  #querySet = 0;
  #identity = 0;
  #version = ZERO;
  /** Number of WebSocket pings, which is the payload of the last one. */
  #pings = 0;
  /** Number of `Ping` messages without a `Pong`. */
  #unanswered = 0;

  constructor(socket: WebSocket, { variables, requests, fault }: {
    readonly variables: Variables;
    readonly requests: Requests;
    readonly fault: (reason: string) => void;
  }) {
    this.socket = socket;
    this.#variables = variables;
    this.#requests = requests;
    this.#fault = fault;
    socket.on("message", (data, isBinary) => this.#received(isBinary ? "" : String(data)));
    socket.on("close", () => this.closed.add(true));
    socket.on("pong", (data) => {
      // A client may answer only the last of several pings, and may send pongs without a ping.
      if (String(data) === String(this.#pings)) this.pongs.add(true);
    });
    socket.on("error", () => {});
  }

  /** Features of its `Connect`. */
  get features(): readonly Json[] {
    const features = this.#connect?.["features"];
    return Array.isArray(features) ? features : [];
  }

  ping(): void {
    this.socket.ping(String(++this.#pings));
  }

  /** `fragments`: number of WebSocket frames of the message. */
  send(frame: Json, fragments = 1): void {
    this.#variables.set("$start", this.#version);
    this.#variables.set("$querySet", this.#querySet);
    this.#variables.set("$identity", this.#identity);
    const sent = filled(frame, this.#variables) as Frame;
    const start = JSON.stringify(sent["startVersion"]);
    // Not for the scenario of a Transition that continues another one.
    if (sent["type"] === "Transition" && start === JSON.stringify(this.#version)) {
      this.#version = sent["endVersion"] ?? ZERO;
    }
    if (sent["type"] === "Ping") this.#unanswered++;
    const call = this.#requests.calls.get(sent["requestId"] ?? null);
    if (call !== undefined) call.isAnswered = true;
    const text = JSON.stringify(sent);
    const size = Math.ceil(text.length / fragments);
    for (let at = 0; at < text.length; at += size) {
      const fin = at + size >= text.length;
      this.socket.send(text.slice(at, at + size), { fin });
      // Control frames may arrive between fragments.
      if (!fin) this.ping();
    }
  }

  #received(text: string): void {
    const frame = parsed(text);
    const type = frame?.["type"];
    if (frame === null || typeof type !== "string") {
      return this.#fault(`A frame of the client is no JSON object with a type: ${text.slice(0, 200)}`);
    }
    const reason = this.#reasonAgainst(type, frame);
    if (reason !== null) return this.#fault(`${reason}: ${text.slice(0, 500)}`);
    // A Pong may be sent at any time. Scenarios expect answers only.
    if (type === "Pong") {
      if (this.#unanswered === 0) return;
      this.#unanswered--;
    }
    const isEmpty = type === "ModifyQuerySet" && (frame["modifications"] as readonly Json[]).length === 0;
    if (CHECKED.has(type) && !isEmpty) this.frames.add(frame);
  }

  #reasonAgainst(type: string, frame: Frame): string | null {
    if ((this.#connect === null) !== (type === "Connect")) {
      return "Connect is the first frame of a connection";
    }
    const { baseVersion, newVersion, requestId } = frame;
    switch (type) {
      case "Connect":
        this.#connect = frame;
        return mismatch({ lastCloseReason: "$any", clientVersion: "$any2" }, frame, new Map());
      case "ModifyQuerySet":
        if (!Array.isArray(frame["modifications"])) return "modifications is a list";
        if (baseVersion !== this.#querySet) return `baseVersion should be ${this.#querySet}`;
        if (newVersion !== ++this.#querySet) return `newVersion should be ${this.#querySet}`;
        return this.#reasonAgainstAdds(frame["modifications"] as readonly Frame[]);
      case "Authenticate":
        return baseVersion === this.#identity++ ? null : `baseVersion should be ${this.#identity - 1}`;
      case "Mutation":
      case "Action": {
        if (requestId === undefined || !Number.isInteger(requestId)) return "requestId is an integer";
        const call = [type, frame["udfPath"] ?? null, frame["args"] ?? null];
        const known = this.#requests.calls.get(requestId);
        if (known === undefined) {
          this.#requests.calls.set(requestId, { call, connection: this, isAnswered: false });
          return null;
        }
        if (!isDeepStrictEqual(known.call, call)) {
          return "This requestId belonged to another call of the session";
        }
        if (type === "Action") return "An action is not sent again";
        if (known.isAnswered) return "This mutation has a response and is not sent again";
        if (known.connection === this) return "A mutation is sent again on a new connection only";
        known.connection = this;
        return null;
      }
      default:
        return null;
    }
  }

  #reasonAgainstAdds(modifications: readonly Frame[]): string | null {
    const { queries } = this.#requests;
    for (const modification of modifications) {
      if (typeof modification !== "object" || modification === null) return "A modification is an object";
      const { type, queryId = null, udfPath = null, args = null } = modification;
      if (type !== "Add") continue;
      const query = [udfPath, args];
      if (!isDeepStrictEqual(queries.get(queryId) ?? query, query)) {
        return `queryId ${queryId} belonged to another query of the client`;
      }
      queries.set(queryId, query);
    }
    return null;
  }
}

function parsed(text: string): Frame | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value as Frame : null;
  } catch {
    return null;
  }
}

/** Listens on a free port of this machine. */
export class ScriptedServer implements AsyncDisposable {
  readonly connections = new AsyncQueue<Connection>();
  readonly #http: Server = createServer((_request, response) => response.writeHead(404).end());
  readonly #sockets: WebSocketServer;
  readonly #open = new Set<WebSocket>();

  private constructor(variables: Variables, fault: (reason: string) => void) {
    const requests: Requests = { queries: new Map(), calls: new Map() };
    this.#sockets = new WebSocketServer({ server: this.#http, path: "/api/sync" });
    this.#sockets.on("connection", (socket) => {
      this.#open.add(socket);
      socket.on("close", () => this.#open.delete(socket));
      this.connections.add(new Connection(socket, { variables, requests, fault }));
    });
  }

  /** `fault` is called when a frame of the client breaks a rule. */
  static async start(variables: Variables, fault: (reason: string) => void): Promise<ScriptedServer> {
    const server = new ScriptedServer(variables, fault);
    await new Promise<void>((resolve) => server.#http.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#open) socket.terminate();
    this.#sockets.close();
    await new Promise((resolve) => {
      this.#http.close(resolve);
      this.#http.closeAllConnections();
    });
  }
}

export type { Connection };
