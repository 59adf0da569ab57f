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
import { requestPath } from "../../kit/request_path.ts";
import { PassedRequests } from "../takeover/mod.ts";
import type { LeadingParts } from "../workers/leading_parts.ts";
import { ToLeader } from "../workers/to_leader.ts";
import { ServiceError } from "../../errors.ts";
import { errorResponse } from "../../kit/error_response.ts";
import { ClientShares } from "./client_shares.ts";
import { isForLeader } from "./leader_requests.ts";
import { listenForServers } from "./link_listener.ts";
import { refusedHere, shownAt } from "../workers/passed_answers.ts";

export interface ForwardingOptions {
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
export interface WayToLeader {
  readonly port: LeaderPort;
  /** Forwards a request if the leader must answer it. The response is delayed until its commits are shown here. */
  pass(request: Request, parts: PassedParts): Promise<Response> | null;
}

export interface PassedParts {
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
  readonly passed: PassedRequests;
}

export class Forwarding implements AsyncDisposable {
  readonly #options: ForwardingOptions;
  readonly #opened: Opened;
  readonly #calls = new LeaderCalls({ ts: () => 0 });
  readonly #road: LeaderRoad;
  readonly #toLeader: ToLeader;
  readonly #shares = new ClientShares();
  readonly #loops: readonly Promise<void>[];
  /** Set while this server leads and serves. */
  #leads: { readonly leader: Leader; readonly parts: LeadingParts } | null = null;
  /** Followers that connected before this server was ready to lead. */
  readonly #early: EarlyFollowers;
  /** Set when this server stops while it leads. */
  #leaving = false;
  /** Set when it has handed the lease to another server and is about to end. */
  #retired = false;
  /** Forwarded requests in flight. */
  readonly #answers = new Set<Promise<void>>();
  #closed = false;

  private constructor(options: ForwardingOptions, opened: Opened) {
    const { cluster, prepare, log } = options;
    this.#options = options;
    this.#opened = opened;
    const secret = cluster.linkSecret;
    this.#early = new EarlyFollowers(secret);
    this.#road = new LeaderRoad({ name: cluster.name, secret, calls: this.#calls, prepare, log });
    // A pooled connection may lead to a former leader and end during a request.
    this.#toLeader = new ToLeader({ path: opened.socket.path, idleMax: 0, log });
    this.#loops = [this.#accept(), this.#road.passOn(opened.socket.listener)];
    cluster.onLeader((leader) => (this.#leads === null || this.#retired) && this.#road.follow(leader));
  }

  /** Listens for the other servers and publishes its address in the cluster. Throws a `StartError`. */
  static async open(options: ForwardingOptions): Promise<Forwarding> {
    const { cluster, config, dataDir, log } = options;
    let self: Forwarding | null = null;
    await using stack = new AsyncDisposableStack();
    const { listener, address } = await listenForServers(config, { log });
    stack.defer(() => closeQuietly(listener));
    const folder = await Deno.realPath(dataDir);
    const socket = stack.use(await LocalSocket.open(folder, REQUESTS_SOCKET));
    const passed = await PassedRequests.open(folder, {
      calls: null,
      kept: true,
      respond: (request, info) => self === null ? refusedHere() : self.#answer(request, info),
    });
    stack.move();
    self = new Forwarding(options, { listener, socket, passed });
    const forwarding = self;
    cluster.reachedAt(address, {
      links: () => forwarding.#leads?.leader.followers.size ?? null,
      unlinkedMs: () => forwarding.#calls.unlinkedMs,
    });
    log("info", "Listening for other servers of the cluster", { address });
    return self;
  }

  get way(): WayToLeader {
    return {
      port: this.#calls,
      pass: (request, { info, host, client }) => {
        const { method } = request;
        const path = requestPath(request);
        if (!isForLeader({ method, path }, () => host.findRoute(method, path) !== null)) return null;
        if (!this.#shares.take(client, info.completed)) {
          return Promise.resolve(errorResponse(new ServiceError("overloaded")));
        }
        const shown = (ts: number) => host.told(ts);
        return this.#toLeader.pass(request, info, { shown, againMs: linkLimits.leaderWaitMs });
      },
    };
  }

  /** Called when the backend serves. As the leader, it accepts followers and runs the calls that have waited here. */
  serve(parts: LeadingParts | undefined): void {
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
    this.#leads = { leader, parts };
    this.#early.giveTo(leader);
    this.#road.leadHere(passed);
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
    return await this.#leads?.leader.prepareNext() ?? false;
  }

  /** Called when this server stops writing. Further calls go to the next leader. */
  retire(): LeaderPort["mutate"] {
    this.#retired = true;
    this.#calls.use(null);
    return (call) => this.#calls.mutate(call);
  }

  /** Asks followers to keep new calls for the next leader. Resolves when earlier ones are answered, or after a timeout. */
  async leave(): Promise<void> {
    const leads = this.#leads;
    if (leads === null) return;
    this.#leaving = true;
    const late = new AbortController();
    const answered = Promise.all([leads.leader.leave(), ...this.#answers]);
    await Promise.race([
      answered.then(() => leads.leader.carried()),
      wait(linkLimits.leaveMs, undefined, { signal: late.signal }).catch(() => {}),
    ]);
    late.abort();
  }

  /** Called when the backend ends. Followers repeat their waiting calls at the next leader. */
  async pause(): Promise<void> {
    const leads = this.#leads;
    this.#leads = null;
    if (leads === null) return;
    // After a handover, calls that end here still go to the next leader.
    if (!this.#retired) this.#calls.use(null);
    await leads.leader[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await this.pause();
    this.#calls.close();
    const { listener, socket, passed } = this.#opened;
    this.#early[Symbol.dispose]();
    closeQuietly(listener);
    this.#toLeader[Symbol.dispose]();
    socket[Symbol.dispose]();
    await this.#road[Symbol.asyncDispose]();
    await Promise.all(this.#loops);
    await passed[Symbol.asyncDispose]();
  }

  /** Never rejects. */
  async #accept(): Promise<void> {
    try {
      for await (const conn of this.#opened.listener) {
        conn.setNoDelay();
        if (this.#leads !== null) this.#leads.leader.take(conn);
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
    const leads = this.#leads;
    if (leads === null || this.#leaving) return refusedHere();
    const answering = Promise.resolve(this.#options.respond(request, info));
    const done = answering.then(() => {}, () => {}).finally(() => this.#answers.delete(done));
    this.#answers.add(done);
    const answer = await answering;
    return shownAt(leads.parts.host.answeredTs, answer);
  }
}
