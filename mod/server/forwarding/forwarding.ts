/**
 * A server of a cluster and the others, for as long as it runs: while it leads it takes what they send, while it follows it
 * sends what it cannot do itself to whoever leads. Calls that wait when the leader is lost stay with the next one, which may
 * be this server.
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
  /** Makes this server ready to lead. Rejects when it will not be. */
  readonly prepare: () => Promise<void>;
  /** Answers a request as if it had come to this server. */
  readonly respond: (request: Request, info: Deno.ServeHandlerInfo) => Response | Promise<Response>;
  readonly log: Log;
}

/** What a backend that follows uses of it. */
export interface WayToLeader {
  readonly port: LeaderPort;
  /** Has the leader answer a request, if it is one for it. What the answer may show is shown here before. */
  pass(request: Request, parts: PassedParts): Promise<Response> | null;
}

export interface PassedParts {
  readonly info: Deno.ServeHandlerInfo;
  readonly host: Pick<IsolateHost, "findRoute" | "told">;
  /** Address of the client, behind the proxies that are trusted. */
  readonly client: string;
}

/** Name of the socket in the data folder on which requests begin their way to the leader. */
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
  /** While this server leads, and serves. */
  #leads: { readonly leader: Leader; readonly parts: LeadingParts } | null = null;
  /** Those that came when it was about to lead. */
  readonly #early: EarlyFollowers;
  /** Set when this server is told to stop while it leads. */
  #leaving = false;
  /** Set when it has left the lease to another one and ends. */
  #retired = false;
  /** Requests of others that are being answered. */
  readonly #answers = new Set<Promise<void>>();
  #closed = false;

  private constructor(options: ForwardingOptions, opened: Opened) {
    const { cluster, prepare, log } = options;
    this.#options = options;
    this.#opened = opened;
    const secret = cluster.linkSecret;
    this.#early = new EarlyFollowers(secret);
    this.#road = new LeaderRoad({ name: cluster.name, secret, calls: this.#calls, prepare, log });
    // One that was kept may lead to a leader of before, and end while a request is on it.
    this.#toLeader = new ToLeader({ path: opened.socket.path, idleMax: 0, log });
    this.#loops = [this.#accept(), this.#road.passOn(opened.socket.listener)];
    cluster.onLeader((leader) => (this.#leads === null || this.#retired) && this.#road.follow(leader));
  }

  /** Listens for the other servers, and tells the cluster where. Throws a `StartError`. */
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
    log("info", "Other servers of the cluster reach this one", { address });
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

  /** What is behind the port serves: as the leader it takes what others send, and runs what has waited here. */
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

  /** Has another server make ready to lead, if this one does. Resolves with whether one has. */
  async prepareNext(): Promise<boolean> {
    return await this.#leads?.leader.prepareNext() ?? false;
  }

  /** This server writes nothing any more: what is still asked of it goes to the next leader. */
  retire(): LeaderPort["mutate"] {
    this.#retired = true;
    this.#calls.use(null);
    return (call) => this.#calls.mutate(call);
  }

  /** Others keep what they ask from now on for the next leader. Resolves when what they have asked is answered, or late. */
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

  /** What is behind the port ends: this server does not lead any more. What others wait for they ask the next one. */
  async pause(): Promise<void> {
    const leads = this.#leads;
    this.#leads = null;
    if (leads === null) return;
    // One that is retired goes on asking its successor for what ends here.
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
      this.#options.log("error", "Other servers cannot reach this one any more: restart it", { error });
    }
  }

  /** A request that another server has passed on. */
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
