/** Links of a cluster: followers forward calls and requests to the leader, which may change and become this server. */
import { setTimeout as wait } from "node:timers/promises";
import { linkLimits } from "../../cluster/limits.ts";
import { CheckedCalls, Leader, LeaderCalls, LeaderLink, LeaderRooms } from "../../cluster/mod.ts";
import type { PostgresCluster } from "../../cluster/postgres/mod.ts";
import type { ClusterConfig } from "../../config/config.ts";
import { ServiceError } from "../../errors.ts";
import type { IsolateHost, LeaderPort } from "../../functions/host/mod.ts";
import { errorResponse } from "../../kit/error_response.ts";
import { requestPath } from "../../kit/http_request.ts";
import { closeQuietly, LocalSocket } from "../../kit/local_socket.ts";
import type { Log } from "../../kit/log.ts";
import type { RoomLink } from "../../presence/mod.ts";
import { ForwardedRequests } from "./forwarded_requests.ts";
import { notLeaderResponse, withTsHeader } from "./internal_headers.ts";
import type { LeaderParts } from "./leader_parts.ts";
import { LeaderProxy } from "./leader_proxy.ts";
import { type LinkListener, listenForServers } from "./link_listener.ts";

/** Below `/api/admin/`: reports about the server itself. */
const OWN_REPORTS = new Set(["cluster", "logs", "replication"]);

/** Below `/api/admin/`, for any method: operations on this process or its database. */
const OWN_OPERATIONS = new Set(["restore", "export"]);

export interface RequestTarget {
  readonly method: string;
  /** Normalized. */
  readonly path: string;
}

/** Whether a request (no function call) may write or needs the leader's state. `isRoute`: the app has a route for it. */
export function isForLeader({ method, path }: RequestTarget, isRoute: () => boolean): boolean {
  // All servers answer CORS preflight requests alike.
  if (method === "OPTIONS") return false;
  if (!isBelow(path, "/api")) {
    return !isBelow(path, "/_") && path !== "/metrics" && isRoute();
  }
  const [, , part = "", first = ""] = path.split("/", 4);
  const isRead = method === "GET" || method === "HEAD";
  switch (part) {
    case "auth":
      return true;
    case "storage":
      // Resumable uploads are stored on the server that accepts them.
      return !isRead || first === "resumable";
    case "admin":
      return !OWN_OPERATIONS.has(first) && (!isRead || !OWN_REPORTS.has(first));
    default:
      return false;
  }
}

function isBelow(pathname: string, folder: string): boolean {
  return pathname === folder || pathname.startsWith(`${folder}/`);
}

/** Limits the concurrent requests of each client to the leader, so that none uses most of the connections. */
export class ClientRequestLimit {
  readonly #requests = new Map<string, number>();

  /** Counts a request until the promise settles. Returns `false` if the client has reached the limit. */
  take(client: string, until: Promise<unknown>): boolean {
    const before = this.#requests.get(client) ?? 0;
    if (before >= linkLimits.tunnelsOfClientMax) return false;
    this.#requests.set(client, before + 1);
    const over = () => {
      const left = (this.#requests.get(client) ?? 1) - 1;
      if (left === 0) this.#requests.delete(client);
      else this.#requests.set(client, left);
    };
    until.then(over, over);
    return true;
  }
}

export interface ClusterLinksOptions {
  readonly cluster: PostgresCluster;
  readonly config: ClusterConfig;
  readonly dataDir: string;
  /** Answers a forwarded request as if it had arrived at this server. */
  readonly respond: (request: Request, info: Deno.ServeHandlerInfo) => Response | Promise<Response>;
  readonly log: Log;
}

/** The connection of a follower's backend to the leader. */
export interface LeaderForwarding {
  readonly port: LeaderPort;
  readonly rooms: RoomLink;
  /** Requests a path of the leader on behalf of this server. */
  request(path: string, signal: AbortSignal): Promise<Response>;
  /** Forwards a request if the leader must answer it. The response is delayed until its commits are shown here. */
  forward(request: Request, parts: ForwardContext): Promise<Response> | null;
}

export interface ForwardContext {
  readonly info: Deno.ServeHandlerInfo;
  readonly host: {
    readonly routes: Pick<IsolateHost["routes"], "find">;
    readonly commits: Pick<IsolateHost["commits"], "published">;
  };
  /** Address of the client, taking trusted proxies into account. */
  readonly client: string;
}

/** Name of the socket in the data folder that accepts requests to the leader. */
const REQUESTS_SOCKET = "leader.sock";

interface Opened {
  readonly listener: LinkListener["listener"];
  readonly socket: LocalSocket;
  readonly forwarded: ForwardedRequests;
}

export class ClusterLinks implements AsyncDisposable {
  readonly #options: ClusterLinksOptions;
  readonly #opened: Opened;
  readonly #calls = new LeaderCalls({ ts: () => 0 });
  readonly #rooms = new LeaderRooms();
  readonly #link: LeaderLink;
  readonly #toLeader: LeaderProxy;
  readonly #clientLimit = new ClientRequestLimit();
  readonly #loops: readonly Promise<void>[];
  /** Set while this server leads and serves. */
  #leading: { readonly leader: Leader; readonly parts: LeaderParts } | null = null;
  /** Set when this server stops while it leads. */
  #leaving = false;
  /** Forwarded requests in flight. */
  readonly #inFlight = new Set<Promise<void>>();
  #closed = false;

  private constructor(options: ClusterLinksOptions, opened: Opened) {
    const { cluster, log } = options;
    this.#options = options;
    this.#opened = opened;
    const { name, linkSecret: secret } = cluster;
    this.#link = new LeaderLink({ name, secret, calls: this.#calls, rooms: this.#rooms, log });
    // A pooled connection may lead to a former leader and end during a request.
    this.#toLeader = new LeaderProxy({ path: opened.socket.path, idleMax: 0, log });
    this.#loops = [this.#accept(), this.#link.forward(opened.socket.listener)];
    cluster.onLeader((leader) => this.#leading === null && this.#link.follow(leader));
  }

  /** Listens for the other servers and publishes its address and certificate. Throws a `StartError`. */
  static async open(options: ClusterLinksOptions): Promise<ClusterLinks> {
    const { cluster, config, dataDir, log } = options;
    let self: ClusterLinks | null = null;
    await using stack = new AsyncDisposableStack();
    const { listener, address, certificate } = await listenForServers(config, { log });
    stack.defer(() => listener.close());
    const folder = await Deno.realPath(dataDir);
    const socket = stack.use(await LocalSocket.open(folder, REQUESTS_SOCKET));
    const forwarded = await ForwardedRequests.open(folder, {
      kept: true,
      respond: (request, info) => self === null ? notLeaderResponse() : self.#answer(request, info),
    });
    stack.move();
    self = new ClusterLinks(options, { listener, socket, forwarded });
    const links = self;
    cluster.setLinkAddress({ address, certificate }, {
      links: () => links.#leading?.leader.followers.size ?? null,
      unlinkedMs: () => links.#calls.unlinkedMs,
    });
    log("info", "Listening for other servers of the cluster", { address });
    return self;
  }

  get leader(): LeaderForwarding {
    return {
      port: this.#calls,
      rooms: this.#rooms,
      request: (path, signal) => this.#toLeader.request(path, signal),
      forward: (request, { info, host, client }) => {
        const { method } = request;
        const path = requestPath(request);
        if (!isForLeader({ method, path }, () => host.routes.find(method, path) !== null)) return null;
        if (!this.#clientLimit.take(client, info.completed)) {
          return Promise.resolve(errorResponse(new ServiceError("overloaded")));
        }
        const shown = (ts: number) => host.commits.published(ts);
        return this.#toLeader.forward(request, info, { shown, againMs: linkLimits.leaderWaitMs });
      },
    };
  }

  /** Called when the backend serves. As the leader, it accepts followers and runs the calls that have waited here. */
  serve(parts: LeaderParts | undefined): void {
    const { cluster, log } = this.#options;
    if (this.#closed || cluster.role !== "leader" || parts === undefined) return;
    const requestsTo = () => Deno.connect({ transport: "unix", path: this.#opened.forwarded.socket });
    const { host, admits, verify, rooms } = parts;
    const leader = new Leader({
      host,
      secret: cluster.linkSecret,
      ...(admits && { admits }),
      ...(verify && { verify }),
      ...(rooms && { rooms }),
      requestsTo,
      log,
    });
    this.#leading = { leader, parts };
    this.#link.leadHere(requestsTo);
    // A session may have ended while its calls waited.
    this.#calls.use(new CheckedCalls(parts));
  }

  /** Asks followers to keep new calls for the next leader. Resolves when earlier ones are answered, or after a timeout. */
  async drainFollowers(): Promise<void> {
    const leads = this.#leading;
    if (leads === null) return;
    this.#leaving = true;
    const late = new AbortController();
    const answered = Promise.all([leads.leader.leave(), ...this.#inFlight]);
    await Promise.race([
      answered.then(() => leads.leader.requestsEnded()),
      wait(linkLimits.leaveMs, undefined, { signal: late.signal }).catch(() => {}),
    ]);
    late.abort();
  }

  /** Called when the backend ends. Followers repeat their waiting calls at the next leader. */
  async stopLeading(): Promise<void> {
    const leads = this.#leading;
    this.#leading = null;
    if (leads === null) return;
    this.#calls.use(null);
    await leads.leader[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await this.stopLeading();
    this.#calls.close();
    const { listener, socket, forwarded } = this.#opened;
    listener.close();
    this.#toLeader[Symbol.dispose]();
    socket[Symbol.dispose]();
    await this.#link[Symbol.asyncDispose]();
    await Promise.all(this.#loops);
    await forwarded[Symbol.asyncDispose]();
  }

  /** Never rejects. */
  async #accept(): Promise<void> {
    for await (const conn of this.#opened.listener) {
      if (this.#leading === null) closeQuietly(conn);
      else this.#leading.leader.accept(conn);
    }
  }

  async #answer(request: Request, info: Deno.ServeHandlerInfo): Promise<Response> {
    const leads = this.#leading;
    if (leads === null || this.#leaving) return notLeaderResponse();
    const answering = Promise.resolve(this.#options.respond(request, info));
    const done = answering.then(() => {}, () => {}).finally(() => this.#inFlight.delete(done));
    this.#inFlight.add(done);
    const answer = await answering;
    return withTsHeader(leads.parts.host.ts, answer);
  }
}
