/**
 * Links between the servers of a cluster. The leader accepts the links of its followers; a follower forwards to the leader
 * what it cannot do itself. Calls that wait when the leader is lost go to the next leader, which may be this server.
 */
import { setTimeout as wait } from "node:timers/promises";
import { Admissions, EarlyFollowers, Leader, LeaderCalls, LeaderRoad } from "../../cluster/mod.ts";
import { linkLimits } from "../../cluster/limits.ts";
import type { PostgresCluster } from "../../cluster/postgres/mod.ts";
import type { ClusterConfig } from "../../config/config.ts";
import type { IsolateHost, LeaderPort } from "../../functions/host/mod.ts";
import { closeQuietly, LocalSocket } from "../../kit/local_socket.ts";
import type { Log } from "../../kit/log.ts";
import { requestPath } from "../../kit/http_request.ts";
import { ForwardedRequests } from "../takeover/mod.ts";
import type { LeaderParts } from "../workers/leader_parts.ts";
import { LeaderProxy } from "../workers/leader_proxy.ts";
import { ServiceError } from "../../errors.ts";
import { errorResponse } from "../../kit/error_response.ts";
import { ClientRequestLimit } from "./client_request_limit.ts";
import { isForLeader } from "./leader_requests.ts";
import { listenForServers } from "./link_listener.ts";
import { notLeaderResponse, withShownTs } from "../workers/internal_headers.ts";

export interface ClusterLinksOptions {
  readonly cluster: PostgresCluster;
  readonly config: ClusterConfig;
  readonly dataDir: string;
  /** Prepares this server to lead. Rejects if it cannot lead. */
  readonly prepare: () => Promise<void>;
  /** Answers a forwarded request as if it had arrived at this server. */
  readonly respond: (request: Request, info: Deno.ServeHandlerInfo) => Response | Promise<Response>;
  readonly log: Log;
}

/** The connection of a follower's backend to the leader. */
export interface LeaderForwarding {
  readonly port: LeaderPort;
  /** Forwards a request if the leader must answer it. The response is delayed until its commits are shown here. */
  forward(request: Request, parts: ForwardContext): Promise<Response> | null;
}

export interface ForwardContext {
  readonly info: Deno.ServeHandlerInfo;
  readonly host: Pick<IsolateHost, "findRoute" | "told">;
  /** Address of the client, taking trusted proxies into account. */
  readonly client: string;
}

/** Name of the socket in the data folder that accepts requests to the leader. */
const REQUESTS_SOCKET = "leader.sock";

interface Opened {
  readonly listener: Deno.TcpListener;
  readonly socket: LocalSocket;
  readonly passed: ForwardedRequests;
}

export class ClusterLinks implements AsyncDisposable {
  readonly #options: ClusterLinksOptions;
  readonly #opened: Opened;
  readonly #calls = new LeaderCalls({ ts: () => 0 });
  readonly #connection: LeaderRoad;
  readonly #toLeader: LeaderProxy;
  readonly #clientLimit = new ClientRequestLimit();
  readonly #loops: readonly Promise<void>[];
  /** Set while this server leads and serves. */
  #leading: { readonly leader: Leader; readonly parts: LeaderParts } | null = null;
  /** Followers that connected before this server was ready to lead. */
  readonly #early: EarlyFollowers;
  /** Set when this server stops while it leads. */
  #leaving = false;
  /** Set when it has handed the lease to another server and is about to end. */
  #handedOver = false;
  /** Forwarded requests in flight. */
  readonly #inFlight = new Set<Promise<void>>();
  #closed = false;

  private constructor(options: ClusterLinksOptions, opened: Opened) {
    const { cluster, prepare, log } = options;
    this.#options = options;
    this.#opened = opened;
    const secret = cluster.linkSecret;
    this.#early = new EarlyFollowers(secret);
    this.#connection = new LeaderRoad({ name: cluster.name, secret, calls: this.#calls, prepare, log });
    // A pooled connection may lead to a former leader and end during a request.
    this.#toLeader = new LeaderProxy({ path: opened.socket.path, idleMax: 0, log });
    this.#loops = [this.#accept(), this.#connection.passOn(opened.socket.listener)];
    cluster.onLeader((leader) =>
      (this.#leading === null || this.#handedOver) && this.#connection.follow(leader)
    );
  }

  /** Listens for the other servers and publishes its address in the cluster. Throws a `StartError`. */
  static async open(options: ClusterLinksOptions): Promise<ClusterLinks> {
    const { cluster, config, dataDir, log } = options;
    let self: ClusterLinks | null = null;
    await using stack = new AsyncDisposableStack();
    const { listener, address } = await listenForServers(config, { log });
    stack.defer(() => closeQuietly(listener));
    const folder = await Deno.realPath(dataDir);
    const socket = stack.use(await LocalSocket.open(folder, REQUESTS_SOCKET));
    const passed = await ForwardedRequests.open(folder, {
      calls: null,
      kept: true,
      respond: (request, info) => self === null ? notLeaderResponse() : self.#answer(request, info),
    });
    stack.move();
    self = new ClusterLinks(options, { listener, socket, passed });
    const forwarding = self;
    cluster.reachedAt(address, {
      links: () => forwarding.#leading?.leader.followers.size ?? null,
      unlinkedMs: () => forwarding.#calls.unlinkedMs,
    });
    log("info", "Listening for other servers of the cluster", { address });
    return self;
  }

  get leader(): LeaderForwarding {
    return {
      port: this.#calls,
      forward: (request, { info, host, client }) => {
        const { method } = request;
        const path = requestPath(request);
        if (!isForLeader({ method, path }, () => host.findRoute(method, path) !== null)) return null;
        if (!this.#clientLimit.take(client, info.completed)) {
          return Promise.resolve(errorResponse(new ServiceError("overloaded")));
        }
        const shown = (ts: number) => host.told(ts);
        return this.#toLeader.forward(request, info, { shown, againMs: linkLimits.leaderWaitMs });
      },
    };
  }

  /** Called when the backend serves. As the leader, it accepts followers and runs the calls that have waited here. */
  serve(parts: LeaderParts | undefined): void {
    const { cluster, log } = this.#options;
    if (this.#closed || cluster.role !== "leader" || parts === undefined) return;
    const passed = () => Deno.connect({ transport: "unix", path: this.#opened.passed.socket });
    const { host, admits, verify } = parts;
    const leader = new Leader({
      host,
      secret: cluster.linkSecret,
      sealed: true,
      ...(admits && { admits }),
      ...(verify && { verify }),
      requestsTo: passed,
      log,
    });
    this.#leading = { leader, parts };
    this.#early.giveTo(leader);
    this.#connection.leadHere(passed);
    // A session may have ended while its calls waited.
    const admissions = new Admissions(admits);
    this.#calls.runHere({
      async mutate(call) {
        const refused = await admissions.refusalOf(call);
        return refused === null
          ? await host.mutate(call)
          : { outcome: refused, ts: host.ts, replayed: false };
      },
      act: async (call) => ({
        outcome: await admissions.refusalOf(call) ?? await host.act(call),
        ts: host.ts,
      }),
    });
  }

  /** Has another server prepare to lead. Returns whether one is prepared. Does nothing on a follower. */
  async prepareNext(): Promise<boolean> {
    return await this.#leading?.leader.prepareNext() ?? false;
  }

  /** Called when this server stops writing. Further calls go to the next leader. */
  stopCommitting(): LeaderPort["mutate"] {
    this.#handedOver = true;
    this.#calls.use(null);
    return (call) => this.#calls.mutate(call);
  }

  /** Asks followers to keep new calls for the next leader. Resolves when earlier ones are answered, or after a timeout. */
  async drainFollowers(): Promise<void> {
    const leads = this.#leading;
    if (leads === null) return;
    this.#leaving = true;
    const late = new AbortController();
    const answered = Promise.all([leads.leader.leave(), ...this.#inFlight]);
    await Promise.race([
      answered.then(() => leads.leader.carried()),
      wait(linkLimits.leaveMs, undefined, { signal: late.signal }).catch(() => {}),
    ]);
    late.abort();
  }

  /** Called when the backend ends. Followers repeat their waiting calls at the next leader. */
  async stopLeading(): Promise<void> {
    const leads = this.#leading;
    this.#leading = null;
    if (leads === null) return;
    // After a handover, calls that end here still go to the next leader.
    if (!this.#handedOver) this.#calls.use(null);
    await leads.leader[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await this.stopLeading();
    this.#calls.close();
    const { listener, socket, passed } = this.#opened;
    this.#early[Symbol.dispose]();
    closeQuietly(listener);
    this.#toLeader[Symbol.dispose]();
    socket[Symbol.dispose]();
    await this.#connection[Symbol.asyncDispose]();
    await Promise.all(this.#loops);
    await passed[Symbol.asyncDispose]();
  }

  /** Never rejects. */
  async #accept(): Promise<void> {
    try {
      for await (const conn of this.#opened.listener) {
        conn.setNoDelay();
        if (this.#leading !== null) this.#leading.leader.take(conn);
        else if (!this.#closed && this.#options.cluster.hasLease) this.#early.hold(conn);
        else closeQuietly(conn);
      }
    } catch (error) {
      if (this.#closed) return;
      this.#options.log("error", "Stopped listening for other servers of the cluster. Restart the server", {
        error,
      });
    }
  }

  /** Answers a request that another server forwards. */
  async #answer(request: Request, info: Deno.ServeHandlerInfo): Promise<Response> {
    const leads = this.#leading;
    if (leads === null || this.#leaving) return notLeaderResponse();
    const answering = Promise.resolve(this.#options.respond(request, info));
    const done = answering.then(() => {}, () => {}).finally(() => this.#inFlight.delete(done));
    this.#inFlight.add(done);
    const answer = await answering;
    return withShownTs(leads.parts.host.answeredTs, answer);
  }
}
