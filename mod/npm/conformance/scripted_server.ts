/** A server that sends recorded frames, and checks the rules that each frame of a client has to follow. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
// @ts-types="./ws.d.ts"
import { type WebSocket, WebSocketServer } from "ws";
import { filled, type Json, mismatch, type Variables } from "./frames.ts";
import { Incoming } from "./incoming.ts";

type Frame = Readonly<Record<string, Json>>;

/** Frame types of clients that scenarios expect. Others, such as those of rooms, are passed over. */
const CHECKED = new Set(["Connect", "ModifyQuerySet", "Authenticate", "Mutation", "Action", "Pong"]);

const ZERO: Json = { querySet: 0, identity: 0, ts: 0 };

/** One connection of the client. */
class Connection {
  readonly frames = new Incoming<Frame>();
  readonly closed = new Incoming<true>();
  readonly pongs = new Incoming<true>();
  readonly socket: WebSocket;
  readonly #variables: Variables;
  /** Mutations by session and request id. A client repeats them unchanged. */
  readonly #mutations: Map<string, string>;
  readonly #fault: (reason: string) => void;
  #connect: Frame | null = null;
  #querySet = 0;
  #identity = 0;
  #version = ZERO;

  constructor(socket: WebSocket, { variables, mutations, fault }: {
    readonly variables: Variables;
    readonly mutations: Map<string, string>;
    readonly fault: (reason: string) => void;
  }) {
    this.socket = socket;
    this.#variables = variables;
    this.#mutations = mutations;
    this.#fault = fault;
    socket.on("message", (data, isBinary) => this.#received(isBinary ? "" : String(data)));
    socket.on("close", () => this.closed.add(true));
    socket.on("pong", () => this.pongs.add(true));
    socket.on("error", () => {});
  }

  /** Features of its `Connect`. */
  get features(): readonly Json[] {
    const features = this.#connect?.["features"];
    return Array.isArray(features) ? features : [];
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
    const text = JSON.stringify(sent);
    const size = Math.ceil(text.length / fragments);
    for (let at = 0; at < text.length; at += size) {
      const fin = at + size >= text.length;
      this.socket.send(text.slice(at, at + size), { fin });
      // Control frames may arrive between fragments.
      if (!fin) this.socket.ping();
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
        return null;
      case "Authenticate":
        return baseVersion === this.#identity++ ? null : `baseVersion should be ${this.#identity - 1}`;
      case "Mutation":
      case "Action": {
        if (!Number.isInteger(requestId)) return "requestId is an integer";
        const key = `${this.#connect?.["sessionId"]} ${requestId}`;
        const call = JSON.stringify([type, frame["udfPath"], frame["args"]]);
        const known = this.#mutations.get(key) ?? call;
        this.#mutations.set(key, known);
        return known === call ? null : "This requestId belonged to another call of the session";
      }
      default:
        return null;
    }
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
  readonly connections = new Incoming<Connection>();
  readonly #http: Server = createServer((_request, response) => response.writeHead(404).end());
  readonly #sockets: WebSocketServer;
  readonly #open = new Set<WebSocket>();

  private constructor(variables: Variables, fault: (reason: string) => void) {
    const mutations = new Map<string, string>();
    this.#sockets = new WebSocketServer({ server: this.#http, path: "/api/sync" });
    this.#sockets.on("connection", (socket) => {
      this.#open.add(socket);
      socket.on("close", () => this.#open.delete(socket));
      this.connections.add(new Connection(socket, { variables, mutations, fault }));
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
