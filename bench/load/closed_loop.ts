/** Clients that each keep a fixed number of calls in flight and send the next call when one is answered. */
import { RawHttp } from "../../tests/support/processes/raw_http.ts";
import { RawWebSocket } from "../../tests/support/processes/raw_websocket.ts";
import { percentile } from "../support/statistics.ts";
import { connectMessage, mutationMessage } from "./messages.ts";
import { type ExpectedRequest, failureOf, requestsOf, type RequestTemplate } from "./request_templates.ts";
import { accountNumbers, transferArgs, type TransferWorkload } from "./transfers.ts";

interface ClosedLoopOptions {
  readonly port: number;
  readonly clients: number;
  readonly durationMs: number;
  readonly workload: TransferWorkload;
}

export interface ClosedLoopResult {
  /** Rate of the calls answered within the duration. */
  readonly perSecond: number;
  /** All answered calls, including those answered after the duration. */
  readonly answered: number;
  /** Latencies of the calls answered within the duration. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Answered calls of a loop. */
class Tally {
  readonly #endAt: number;
  readonly #durationMs: number;
  readonly #latencies: number[] = [];
  #answered = 0;

  constructor(durationMs: number) {
    this.#durationMs = durationMs;
    this.#endAt = performance.now() + durationMs;
  }

  /** Counts an answer. Returns whether to send another call. */
  answered(sentAt: number): boolean {
    const now = performance.now();
    this.#answered++;
    if (now >= this.#endAt) return false;
    this.#latencies.push(now - sentAt);
    return true;
  }

  result(): ClosedLoopResult {
    if (this.#latencies.length === 0) throw new Error("No call was answered in time");
    return {
      answered: this.#answered,
      perSecond: this.#latencies.length / (this.#durationMs / 1000),
      p50Ms: percentile(this.#latencies, 0.5),
      p99Ms: percentile(this.#latencies, 0.99),
    };
  }
}

/** Time for the last calls to be answered. */
const DRAIN_MS_MAX = 10_000;
/** Additional time for each call of a sequence. */
const CALL_MS_MAX = 50;

async function withDeadline<Result>(work: Promise<Result>, limitMs: number): Promise<Result> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error("Calls were not answered in time")), limitMs);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

export interface WebSocketLoopOptions extends ClosedLoopOptions {
  /** Default: `/api/sync`. */
  readonly path?: string;
  /** Calls that each client keeps in flight. */
  readonly inFlight: number;
  /** Whether the client writes all messages of one tick of its event loop at once. Default: each message separately. */
  readonly batched?: boolean;
}

/** Sends transfers as Mutation messages. An echo of the message counts as its answer. Throws if a call fails. */
export async function webSocketLoop(
  { port, path = "/api/sync", clients, inFlight, batched = false, durationMs, workload }:
    WebSocketLoopOptions,
): Promise<ClosedLoopResult> {
  const nextArgs = transferArgs(workload);
  const sockets: RawWebSocket[] = [];
  const finished: Promise<void>[] = [];
  const started = Promise.withResolvers<Tally>();
  for (let client = 0; client < clients; client++) {
    const end = Promise.withResolvers<void>();
    finished.push(end.promise);
    const sentAt = new Map<number, number>();
    let requestId = 0;
    let tally: Tally | null = null;
    const send = () => {
      const id = requestId++;
      sentAt.set(id, performance.now());
      socket.send(mutationMessage({ udfPath: "transfer:transfer", args: nextArgs() }, id));
    };
    const socket = await RawWebSocket.connect({
      port,
      path,
      separateWrites: !batched,
      onText: (text) => {
        if (text.startsWith('{"type":"FatalError"') || text.includes('"success":false')) {
          return end.reject(new Error(text));
        }
        if (tally === null || !text.startsWith('{"type":"Mutation')) return;
        const id = parseInt(text.slice(text.indexOf('"requestId":') + 12));
        if (tally.answered(sentAt.get(id) ?? NaN)) send();
        sentAt.delete(id);
        if (sentAt.size === 0) end.resolve();
      },
      onClose: (code, reason) => end.reject(new Error(`The server closed the socket: ${code} ${reason}`)),
    });
    socket.send(connectMessage());
    sockets.push(socket);
    started.promise.then((started) => {
      tally = started;
      for (let i = 0; i < inFlight; i++) send();
    });
  }
  const tally = new Tally(durationMs);
  started.resolve(tally);
  try {
    await withDeadline(Promise.all(finished), durationMs + DRAIN_MS_MAX);
    return tally.result();
  } finally {
    for (const end of finished) end.catch(() => {});
    await Promise.all(sockets.map((socket) => socket.close()));
  }
}

export interface HttpLoopOptions extends ClosedLoopOptions {
  /** Transfers, reads of balances, posts of members to rooms, or requests of a template. Default: transfers. */
  readonly calls?: "transfers" | "reads" | "posts" | RequestTemplate;
}

/** Sends calls one after another on each keep-alive connection. Throws if a call fails. */
export async function httpLoop(options: HttpLoopOptions): Promise<ClosedLoopResult> {
  const { port, clients, durationMs } = options;
  const next = requestsFor(options);
  const connections: RawHttp[] = [];
  try {
    for (let i = 0; i < clients; i++) connections.push(await RawHttp.connect(port));
    const tally = new Tally(durationMs);
    const callUntilEnd = async (connection: RawHttp) => {
      for (let more = true; more;) {
        const sentAt = performance.now();
        const request = next();
        const failure = failureOf(await connection.send(request), request);
        if (failure !== null) throw new Error(failure);
        more = tally.answered(sentAt);
      }
    };
    await withDeadline(Promise.all(connections.map(callUntilEnd)), durationMs + DRAIN_MS_MAX);
    return tally.result();
  } finally {
    for (const connection of connections) connection[Symbol.dispose]();
  }
}

/** Returns a function that returns the next request. */
function requestsFor({ calls = "transfers", workload }: HttpLoopOptions): () => ExpectedRequest {
  if (typeof calls === "object") return requestsOf(calls, workload.seed);
  const post = (path: string, body: () => string) => () =>
    ({ method: "POST", path, body: body(), expected: '"status":"success"' }) as const;
  if (calls === "transfers") {
    const nextArgs = transferArgs(workload);
    return post("/api/mutation", () => `{"path":"transfer:transfer","args":${nextArgs()}}`);
  }
  const nextAccount = accountNumbers(workload);
  if (calls === "reads") {
    return post("/api/query", () => `{"path":"accounts:get_account","args":{"id":${nextAccount()}}}`);
  }
  return post("/api/mutation", () => {
    const [room, member] = [nextAccount(), nextAccount() % 10];
    return `{"path":"rooms:post","args":{"room":${room},"member":${member},"text":"${POST_TEXT}"}}`;
  });
}

/** 50 characters. */
const POST_TEXT = "Good morning to you all, the kettle is on in here.";

export interface SequentialCallsOptions {
  readonly port: number;
  /** Default: `/api/sync`. */
  readonly path?: string;
  /** At least 1. */
  readonly count: number;
  readonly workload: TransferWorkload;
  /** Time between an answer and the next call. Default: none. */
  readonly pauseMs?: number;
}

/**
 * Sends transfers one after another on an idle socket. Returns the durations in milliseconds, which include the client's own
 * work. Without a pause there are no promises or timers between the calls.
 */
export async function sequentialCalls(
  { port, path = "/api/sync", count, workload, pauseMs }: SequentialCallsOptions,
): Promise<number[]> {
  const nextArgs = transferArgs(workload);
  const durations: number[] = [];
  const done = Promise.withResolvers<number[]>();
  let sentAt = 0;
  const sendNext = (socket: RawWebSocket) => {
    const args = nextArgs();
    sentAt = performance.now();
    socket.send(mutationMessage({ udfPath: "transfer:transfer", args }, durations.length));
  };
  await using socket = await RawWebSocket.connect({
    port,
    path,
    onText: (text) => {
      if (!text.startsWith('{"type":"Mutation')) return;
      durations.push(performance.now() - sentAt);
      if (text.includes('"success":false')) done.reject(new Error(text));
      else if (durations.length === count) done.resolve(durations);
      else if (pauseMs === undefined) sendNext(socket);
      else setTimeout(() => sendNext(socket), pauseMs);
    },
    onClose: (code) => done.reject(new Error(`The server closed the socket: ${code}`)),
  });
  socket.send(connectMessage());
  sendNext(socket);
  return await withDeadline(done.promise, DRAIN_MS_MAX + count * (CALL_MS_MAX + (pauseMs ?? 0)));
}
