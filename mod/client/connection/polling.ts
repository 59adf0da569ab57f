/**
 * Transfers results and calls over HTTP while no socket is available (`fallback.ts` decides). Live queries are requested in
 * rounds. The results of a round are shown in one step, but may have different timestamps. Calls are sent while polling is on,
 * and are completed even if a socket opens in the meantime.
 */
import type { TokenKeeper } from "../accounts/auth.ts";
import { Alarm, type Clock } from "../clock.ts";
import { ConnectionLostError } from "../errors.ts";
import { type ConnectionView, Fallback } from "./fallback.ts";
import type { HttpServer } from "../http/http_call.ts";
import { endGroup, HttpTransport, type RequestGroup } from "./http_transport.ts";
import * as clientLimits from "../limits.ts";
import type { LiveQuery, QueryResult, QuerySet } from "../queries/query_set.ts";
import type { Call, Requests } from "../requests.ts";
import { pageIsHidden } from "./wake_events.ts";

export interface PollingParts extends HttpServer {
  readonly queries: QuerySet;
  readonly requests: Requests;
  readonly tokens: TokenKeeper;
  readonly clock: Clock;
  readonly sessionId: string;
  readonly random: () => number;
}

export type PolledResults = ReadonlyMap<LiveQuery, QueryResult>;

/** Receives the results of polling. */
export interface PollingOwner {
  /**
   * Committed mutations have waited long enough for a Transition with their writes (a socket sends none for calls over HTTP), or
   * for a query that gets no response while others do.
   */
  writesOverdue(): void;
  /** Starts the next attempt to open a socket now, if one is scheduled. */
  trySocket(): void;
  /** Polling started or ended, or rejected mutations whose optimistic updates must be dropped. */
  pollingChanged(givenUp: readonly number[]): void;
  /** Results of a round, which include the writes of mutations up to `visibleTs`. */
  polled(results: PolledResults, visibleTs: number): void;
  /** A call finished or is queued again. With `dropUpdate`, its optimistic update must be dropped. */
  callEnded(call: Call, end: CallEnd): void;
}

/** Outcome of a call over HTTP. */
export interface CallEnd {
  readonly dropUpdate: boolean;
  readonly logLines: readonly string[];
  /** `ts` of a committed mutation; otherwise 0. */
  readonly ts: number;
}

/** All live queries, or those without a response yet. */
type Scope = "all" | "new";

export class Polling {
  readonly #parts: PollingParts;
  readonly #owner: PollingOwner;
  readonly #transport: HttpTransport;
  readonly #fallback: Fallback;
  #closed = false;
  /** Whether a mutation got no response: queued calls are then sent with the next round. */
  #pausing = false;
  /** Requests of the current round; replaced by each round, `null` in between. */
  #round: RequestGroup | null = null;
  /** The round to start after the current one. */
  #after: Scope | null = null;
  /** Running calls and probes; aborted only when the client closes. */
  readonly #calls: RequestGroup = new Set();
  /** Ids of queries with a response since the last full round. */
  readonly #answered = new Set<number>();
  /** Timer of the next full round. */
  readonly #next: Alarm;
  /** Timer for the visibility of writes over HTTP: on an open socket, or while a query has no response. */
  readonly #overdue: Alarm;

  constructor(parts: PollingParts, owner: PollingOwner) {
    this.#parts = parts;
    this.#owner = owner;
    this.#transport = new HttpTransport(parts, parts);
    this.#next = new Alarm(parts.clock);
    this.#overdue = new Alarm(parts.clock);
    this.#fallback = new Fallback(parts.clock, {
      probe: () => this.#transport.works(this.#calls),
      trySocket: () => owner.trySocket(),
      pollingBegins: () => this.#begin(),
      pollingEnds: () => this.#end(),
    });
  }

  /** Whether results and calls are transferred over HTTP. */
  get active(): boolean {
    return this.#fallback.phase === "polling";
  }

  /** Call after each change of the connection. */
  connectionChanged(connection: ConnectionView): void {
    this.#fallback.connectionChanged(connection);
    if (connection.phase === "open") this.awaitWrites();
  }

  close(): void {
    this.#closed = true;
    this.#endRounds();
    this.#overdue.clear();
    endGroup(this.#calls);
  }

  /** Starts a full round now, or after the current one. */
  refresh(): void {
    this.#start("all");
  }

  /** Requests new queries. */
  queriesChanged(): void {
    this.#start("new");
  }

  /** The token changed: discard the results of the current round. */
  tokenDecided(): void {
    this.#abandonRound();
    this.refresh();
    this.sendCalls();
  }

  /** Sends queued calls, up to the limits. */
  sendCalls(): void {
    const { clock, requests, tokens } = this.#parts;
    if (!this.active || this.#pausing || !tokens.decided) return;
    for (const call of requests.takeForHttp(clock.now())) void this.#send(call);
  }

  /** Starts the timer for the visibility of writes over HTTP. */
  awaitWrites(waitMs = clientLimits.writesVisibleMs): void {
    if (this.#parts.requests.newestAnsweredTs < 0) return;
    this.#overdue.set(waitMs, () => this.#owner.writesOverdue());
  }

  #start(scope: Scope): void {
    // The token is not decided yet; `tokenDecided` starts the round.
    if (!this.active || !this.#parts.tokens.decided) return;
    if (this.#round === null) void this.#run(scope);
    else if (this.#after !== "all") this.#after = scope;
  }

  #begin(): void {
    this.#overdue.clear();
    this.#transport.begin();
    this.#resume();
  }

  /** Starts a round and sends queued calls, except resent mutations that the server would not deduplicate. */
  #resume(): void {
    const { clock, requests } = this.#parts;
    this.#pausing = false;
    this.#owner.pollingChanged(
      requests.rejectSent(this.#transport.recognises ? clock.now() - clientLimits.resendMs : Infinity),
    );
    this.refresh();
    this.sendCalls();
  }

  /** Running calls continue. */
  #end(): void {
    this.#endRounds();
    this.#owner.pollingChanged([]);
  }

  #endRounds(): void {
    this.#abandonRound();
    this.#next.clear();
    this.#answered.clear();
  }

  #abandonRound(): void {
    const round = this.#round;
    this.#round = null;
    this.#after = null;
    if (round !== null) endGroup(round);
  }

  async #run(scope: Scope): Promise<void> {
    const { queries, requests, tokens, clock } = this.#parts;
    const targets = [...queries.live()].filter(({ queryId }) =>
      scope === "all" || !this.#answered.has(queryId)
    );
    if (scope === "new" && targets.length === 0) return;
    tokens.prepare();
    if (!tokens.decided) return;
    const round: RequestGroup = this.#round = new Set();
    const beganAt = clock.now();
    const writtenTs = requests.newestAnsweredTs;
    const results = await this.#ask(targets, round);
    const works = targets.length > 0 ? results.size > 0 : await this.#works(round);
    // A socket opened, the token changed or the client closed: newer results may exist.
    if (this.#round !== round) return;
    this.#round = null;
    const after = this.#after;
    this.#after = null;
    if (!tokens.decided) return;
    if (!works) return scope === "all" ? this.#fallback.httpFailed() : this.refresh();
    if (scope === "all") {
      this.#answered.clear();
      this.#schedule(clock.now() - beganAt);
      if (results.size === targets.length) this.#overdue.clear();
      else if (!this.#overdue.isSet) this.awaitWrites(clientLimits.httpCallMs);
    }
    for (const { queryId } of results.keys()) this.#answered.add(queryId);
    // Without queries, committed mutations are visible immediately.
    const visibleTs = targets.length === 0 ? Infinity : results.size === targets.length ? writtenTs : -1;
    this.#owner.polled(results, scope === "all" ? visibleTs : -1);
    if (after !== null) this.#start(after);
  }

  /** Requests queries with bounded concurrency; omits those without a response. */
  async #ask(targets: readonly LiveQuery[], round: RequestGroup): Promise<PolledResults> {
    const results = new Map<LiveQuery, QueryResult>();
    const waiting = targets.values();
    const lane = async () => {
      for (const query of waiting) {
        if (this.#round !== round) return;
        const { udfPath, args } = query;
        const outcome = await this.#transport.call(
          { kind: "query", udfPath, args },
          { timeoutMs: clientLimits.httpCallMs, group: round },
        );
        if (outcome.type === "value") results.set(query, { ok: true, value: outcome.value });
        else if (outcome.type === "failed") results.set(query, { ok: false, error: outcome.error });
      }
    };
    await Promise.all(Array.from({ length: clientLimits.polledAtOnceMax }, lane));
    return results;
  }

  /** Whether HTTP works and, if signed in, the token is accepted. */
  async #works(round: RequestGroup): Promise<boolean> {
    if (this.#parts.tokens.token === null) return await this.#transport.works(round);
    const { type } = await this.#transport.call(
      { kind: "query", udfPath: "_auth:account", args: {} },
      { timeoutMs: clientLimits.httpCallMs, group: round },
    );
    return type !== "lost";
  }

  #schedule(tookMs: number): void {
    const intervalMs = Math.max(tookMs, pageIsHidden() ? clientLimits.pollHiddenMs : clientLimits.pollMs);
    this.#next.set(
      intervalMs * (1 + 0.5 * this.#parts.random()),
      () => this.#pausing ? this.#resume() : this.refresh(),
    );
  }

  async #send(call: Call): Promise<void> {
    const { requests, sessionId } = this.#parts;
    const { kind, requestId, udfPath, args } = call;
    const mutates = kind === "mutation";
    const outcome = await this.#transport.call(
      { kind, udfPath, args, ...mutates && { request: `${sessionId} ${requestId}` } },
      { timeoutMs: mutates ? clientLimits.httpCallMs : clientLimits.httpActionMs, group: this.#calls },
    );
    if (this.#closed) return;
    const lost = outcome.type === "lost";
    const again = lost && mutates && this.#transport.recognises;
    if (outcome.type === "refused" || again) requests.returnFromHttp(requestId);
    this.#pausing ||= again;
    const answer = outcome.type === "value"
      ? outcome
      : outcome.type === "failed"
      ? outcome.error
      : new ConnectionLostError(kind);
    // Nothing for a call that is queued again.
    const dropUpdate = requests.answeredOverHttp(requestId, answer);
    this.#owner.callEnded(call, {
      dropUpdate,
      logLines: "logLines" in answer ? answer.logLines : [],
      ts: outcome.type === "value" ? outcome.ts : 0,
    });
    // The writes should become visible soon; also check that HTTP still works.
    if (outcome.type === "value" || lost) this.refresh();
    if (outcome.type === "value" && !this.active) this.awaitWrites();
  }
}
