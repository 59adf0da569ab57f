/** Clients that each keep a number of transfers in flight and send the next when one is answered. */
import { RawHttp } from "../../tests/support/processes/raw_http.ts";
import { RawWebSocket } from "../../tests/support/processes/raw_websocket.ts";
import { percentile } from "../support/statistics.ts";
import { type ExpectedRequest, failureOf, requestsOf, type RequestTemplate } from "./request_templates.ts";
import { accountNumbers, transferArgs, type TransferWorkload } from "./transfers.ts";

export interface ClosedLoop {
  readonly port: number;
  readonly clients: number;
  /** Calls that each client keeps in flight; over HTTP it is one. */
  readonly inFlight: number;
  readonly durationMs: number;
  readonly workload: TransferWorkload;
}

export interface ClosedLoopResult {
  readonly perSecond: number;
  /** All that were answered with success, those after the time included. */
  readonly answered: number;
  /** Of the calls that were sent and answered within the time; milliseconds. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failed: number;
  /** First answer that was not a success. */
  readonly failure: string | null;
}

class Tally {
  readonly #endAt: number;
  readonly #durationMs: number;
  readonly #latencies: number[] = [];
  #answered = 0;
  #failed = 0;
  #failure: string | null = null;

  constructor(durationMs: number) {
    this.#durationMs = durationMs;
    this.#endAt = performance.now() + durationMs;
  }

  /** Whether another call may be sent. Also counts the one that was sent at `sentAt` and is answered now. */
  answered(sentAt: number, failure: string | null): boolean {
    const now = performance.now();
    if (failure !== null) {
      this.#failed++;
      this.#failure ??= failure;
    } else {
      this.#answered++;
      if (now < this.#endAt) this.#latencies.push(now - sentAt);
    }
    return now < this.#endAt;
  }

  result(): ClosedLoopResult {
    if (this.#latencies.length === 0) throw new Error(`No call was answered: ${this.#failure ?? "silence"}`);
    return {
      answered: this.#answered,
      perSecond: this.#latencies.length / (this.#durationMs / 1000),
      p50Ms: percentile(this.#latencies, 0.5),
      p99Ms: percentile(this.#latencies, 0.99),
      failed: this.#failed,
      failure: this.#failure,
    };
  }
}

const DRAIN_MS = 10_000;
/** And this long for each call that follows another, on a slow disk. */
const CALL_MS = 50;

/** Rejects when a round has not come to its end this long after its time. */
async function inTime<Result>(work: Promise<Result>, limitMs: number): Promise<Result> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("Calls stayed unanswered")), limitMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

export interface WebSocketLoop extends ClosedLoop {
  readonly path: string;
  /** Whether each message leaves in a write of its own. */
  readonly eachAlone: boolean;
}

/** Transfers as Mutation messages over `path`. An echo of the message counts as its answer. */
export async function webSocketLoop(loop: WebSocketLoop): Promise<ClosedLoopResult> {
  const nextArgs = transferArgs(loop.workload);
  const sockets: RawWebSocket[] = [];
  const done: Promise<void>[] = [];
  const begin = Promise.withResolvers<Tally>();
  for (let client = 0; client < loop.clients; client++) {
    const ended = Promise.withResolvers<void>();
    done.push(ended.promise);
    const sentAt = new Map<number, number>();
    let requestId = 0;
    let tally: Tally | null = null;
    const send = () => {
      const id = requestId++;
      sentAt.set(id, performance.now());
      socket.send(
        `{"type":"Mutation","requestId":${id},"udfPath":"transfer:transfer","args":${nextArgs()}}`,
      );
    };
    const socket = await RawWebSocket.connect({
      port: loop.port,
      path: loop.path,
      eachAlone: loop.eachAlone,
      onText: (text) => {
        if (tally === null || !text.startsWith('{"type":"Mutation')) {
          if (text.startsWith('{"type":"FatalError"')) ended.reject(new Error(text));
          return;
        }
        const id = parseInt(text.slice(text.indexOf('"requestId":') + 12));
        const failed = text.includes('"success":false');
        if (tally.answered(sentAt.get(id) ?? NaN, failed ? text : null)) send();
        sentAt.delete(id);
        if (sentAt.size === 0) ended.resolve();
      },
      onClose: (code, reason) => ended.reject(new Error(`The server closed the socket: ${code} ${reason}`)),
    });
    socket.send(JSON.stringify({
      type: "Connect",
      sessionId: crypto.randomUUID(),
      connectionCount: 0,
      lastCloseReason: null,
      clientVersion: "bench",
    }));
    sockets.push(socket);
    begin.promise.then((started) => {
      tally = started;
      for (let i = 0; i < loop.inFlight; i++) send();
    });
  }
  const tally = new Tally(loop.durationMs);
  begin.resolve(tally);
  try {
    await inTime(Promise.all(done), loop.durationMs + DRAIN_MS);
    return tally.result();
  } finally {
    for (const ended of done) ended.catch(() => {});
    await Promise.all(sockets.map((socket) => socket.close()));
  }
}

export interface HttpLoop extends ClosedLoop {
  /** The calls: transfers, reads of balances, posts of members to their rooms, or requests of a template. */
  readonly calls?: "transfers" | "reads" | "posts" | RequestTemplate;
}

/** Transfers as `POST /api/mutation`, or other calls, one after another on each kept-alive connection. */
export async function httpLoop(loop: HttpLoop): Promise<ClosedLoopResult> {
  const next = requestsFor(loop);
  const connections: RawHttp[] = [];
  try {
    for (let i = 0; i < loop.clients; i++) connections.push(await RawHttp.connect(loop.port));
    const tally = new Tally(loop.durationMs);
    await inTime(
      Promise.all(connections.map(async (connection) => {
        for (let more = true; more;) {
          const sentAt = performance.now();
          const request = next();
          const answer = await connection.send(request);
          more = tally.answered(sentAt, failureOf(answer, request));
        }
      })),
      loop.durationMs + DRAIN_MS,
    );
    return tally.result();
  } finally {
    for (const connection of connections) connection[Symbol.dispose]();
  }
}

/** Returns the next request with each call. */
function requestsFor({ calls = "transfers", workload }: HttpLoop): () => ExpectedRequest {
  if (typeof calls === "object") return requestsOf(calls, workload.seed);
  const post = (path: string, body: () => string) => () =>
    ({ method: "POST", path, body: body(), expected: "" }) as const;
  if (calls === "transfers") {
    const nextArgs = transferArgs(workload);
    return post("/api/mutation", () => `{"path":"transfer:transfer","args":${nextArgs()}}`);
  }
  const draw = accountNumbers(workload);
  if (calls === "reads") {
    return post("/api/query", () => `{"path":"accounts:get_account","args":{"id":${draw()}}}`);
  }
  return post(
    "/api/mutation",
    () => `{"path":"rooms:post","args":{"room":${draw()},"member":${draw() % 10},"text":"${TEXT}"}}`,
  );
}

/** The text of a post, 50 characters. */
const TEXT = "Good morning to you all, the kettle is on in here.";

export interface OneAtATime {
  readonly port: number;
  readonly path: string;
  readonly count: number;
  readonly workload: TransferWorkload;
  /** Time from an answer to the next message; none when absent. */
  readonly pauseMs?: number;
}

/**
 * Durations in milliseconds of `count` transfers, one at least, over one otherwise idle socket, each sent when the last
 * is answered, or so long after. What the client does by itself is part of them: without a pause there is no promise and no
 * timer for each.
 */
export async function sequentialCalls(options: OneAtATime): Promise<number[]> {
  const nextArgs = transferArgs(options.workload);
  const durations: number[] = [];
  const done = Promise.withResolvers<number[]>();
  let sentAt = 0;
  const next = (socket: RawWebSocket) => {
    const args = nextArgs();
    sentAt = performance.now();
    socket.send(
      `{"type":"Mutation","requestId":${durations.length},"udfPath":"transfer:transfer","args":${args}}`,
    );
  };
  await using socket = await RawWebSocket.connect({
    port: options.port,
    path: options.path,
    onText: (text) => {
      if (!text.startsWith('{"type":"Mutation')) return;
      durations.push(performance.now() - sentAt);
      if (text.includes('"success":false')) done.reject(new Error(text));
      else if (durations.length === options.count) done.resolve(durations);
      else if (options.pauseMs === undefined) next(socket);
      else setTimeout(() => next(socket), options.pauseMs);
    },
    onClose: (code) => done.reject(new Error(`The server closed the socket: ${code}`)),
  });
  socket.send(JSON.stringify({
    type: "Connect",
    sessionId: crypto.randomUUID(),
    connectionCount: 0,
    lastCloseReason: null,
    clientVersion: "bench",
  }));
  next(socket);
  return await inTime(done.promise, DRAIN_MS + options.count * (CALL_MS + (options.pauseMs ?? 0)));
}
