/**
 * Results and calls over HTTP, for as long as no socket can be had (`fallback.ts` says when). Live queries are asked in
 * rounds, one after another; the results of a round are shown in one step, but each was computed at a moment of its
 * own. Calls go out while polling is on and are brought to their end also when a socket has opened meanwhile.
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

/** Who is told what polling brought. */
export interface PollingOwner {
  /**
   * Mutations that committed over HTTP have waited long enough for a Transition that shows their writes (a socket owes none
   * for what it did not carry), or for a query that gets no answer while others do.
   */
  writesOverdue(): void;
  /** Begins the next attempt to open a socket now, if it is being waited for. */
  trySocket(): void;
  /** Polling began or ended, or gave mutations up, whose optimistic updates have to go. */
  pollingChanged(givenUp: readonly number[]): void;
  /** A round's results; the writes of mutations up to `visibleTs` are in them. */
  polled(results: PolledResults, visibleTs: number): void;
  /** A call ended or waits again; with `dropUpdate` its optimistic update has to go. */
  callEnded(call: Call, end: CallEnd): void;
}

/** How a call over HTTP ended. */
export interface CallEnd {
  readonly dropUpdate: boolean;
  readonly logLines: readonly string[];
  /** Of a mutation that committed; 0 for everything else. */
  readonly ts: number;
}

/** All live queries, or those that have no answer yet. */
type Scope = "all" | "new";

export class Polling {
  readonly #parts: PollingParts;
  readonly #owner: PollingOwner;
  readonly #transport: HttpTransport;
  readonly #fallback: Fallback;
  #closed = false;
  /** Whether a mutation got no answer: what waits is sent with the next round, not at once. */
  #pausing = false;
  /** Requests of the round under way; replaced by each round, `null` between them. */
  #round: RequestGroup | null = null;
  /** The round to begin when the one under way is over. */
  #after: Scope | null = null;
  /** Calls and probes under way; they end with the client only. */
  readonly #calls: RequestGroup = new Set();
  /** Ids of the queries that have an answer since the last full round; emptied by the next one. */
  readonly #answered = new Set<number>();
  /** Waits for the next full round. */
  readonly #next: Alarm;
  /** Waits for the writes of mutations over HTTP to become visible: on an open socket, or while a query has no answer. */
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

  /** Whether results and calls go over HTTP. */
  get active(): boolean {
    return this.#fallback.phase === "polling";
  }

  /** To be called after each change of the connection. */
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

  /** Begins a full round now, or when the one under way is over. */
  refresh(): void {
    this.#start("all");
  }

  /** Asks queries that are new. */
  queriesChanged(): void {
    this.#start("new");
  }

  /** Another token is to be used: what the round under way brings is no longer asked for. */
  tokenDecided(): void {
    this.#abandonRound();
    this.refresh();
    this.sendCalls();
  }

  /** Sends calls that wait, as far as there is room. */
  sendCalls(): void {
    const { clock, requests, tokens } = this.#parts;
    if (!this.active || this.#pausing || !tokens.decided) return;
    for (const call of requests.takeForHttp(clock.now())) void this.#send(call);
  }

  /** Gives the writes of mutations over HTTP some time to become visible. */
  awaitWrites(waitMs = clientLimits.writesVisibleMs): void {
    if (this.#parts.requests.newestAnsweredTs < 0) return;
    this.#overdue.set(waitMs, () => this.#owner.writesOverdue());
  }

  #start(scope: Scope): void {
    // While it is not known which token to use there is nobody to ask for; `tokenDecided` begins the round.
    if (!this.active || !this.#parts.tokens.decided) return;
    if (this.#round === null) void this.#run(scope);
    else if (this.#after !== "all") this.#after = scope;
  }

  #begin(): void {
    this.#overdue.clear();
    this.#transport.begin();
    this.#resume();
  }

  /** Begins a round and sends what waits, but for what was sent and would not be recognised. */
  #resume(): void {
    const { clock, requests } = this.#parts;
    this.#pausing = false;
    this.#owner.pollingChanged(
      requests.giveUpSent(this.#transport.recognises ? clock.now() - clientLimits.resendMs : Infinity),
    );
    this.refresh();
    this.sendCalls();
  }

  /** Calls under way go on to their end. */
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
    // A socket opened, the token changed or the client was closed: a newer result may be there already.
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
    // Without queries there is nothing a committed mutation could become visible in.
    const visibleTs = targets.length === 0 ? Infinity : results.size === targets.length ? writtenTs : -1;
    this.#owner.polled(results, scope === "all" ? visibleTs : -1);
    if (after !== null) this.#start(after);
  }

  /** Asks queries, a few at once; those without an answer are left out. */
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

  /** Whether HTTP works and, when somebody is signed in, the token is accepted. */
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
    // Nothing, for a call that was returned.
    const dropUpdate = requests.answeredOverHttp(requestId, answer);
    this.#owner.callEnded(call, {
      dropUpdate,
      logLines: "logLines" in answer ? answer.logLines : [],
      ts: outcome.type === "value" ? outcome.ts : 0,
    });
    // What was written is to be seen soon, and whether HTTP still works.
    if (outcome.type === "value" || lost) this.refresh();
    if (outcome.type === "value" && !this.active) this.awaitWrites();
  }
}
