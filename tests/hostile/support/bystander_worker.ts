/** The bystander's thread: a query and a mutation at a time, each followed by a short pause. */
/// <reference lib="deno.worker" />
import { RawHttp } from "../../support/processes/raw_http.ts";
import { RawWebSocket } from "../../support/processes/raw_websocket.ts";
import type { ServerMessage } from "../../../mod/protocol/server_messages.ts";
import type { Served, Waits } from "./bystander.ts";
import { Stopwatch } from "./stopwatch.ts";

export type ToBystander =
  | { readonly type: "start"; readonly port: number; readonly token: string; readonly isMeasured: boolean }
  | { readonly type: "count" }
  | { readonly type: "stop" };
export type FromBystander =
  | { readonly type: "started" }
  | { readonly type: "counted"; readonly served: Served }
  | { readonly type: "stopped"; readonly waits: Waits }
  | { readonly type: "failed"; readonly message: string };

/** Time between an answer and the next call of the same kind, if latencies are measured. */
const PAUSE_MS = 15;
/** The same in tests, which only require that calls are answered during an attack. */
const UNMEASURED_PAUSE_MS = 60;
const FAILURES_MAX = 5;
/** Mutations before latencies count, because first runs take longer. */
const WARM_MUTATIONS = 10;
const UNMEASURED_WARM_MUTATIONS = 1;

const query = new Stopwatch(PAUSE_MS);
const mutation = new Stopwatch(PAUSE_MS);
const shown = new Stopwatch(PAUSE_MS);
const failures: string[] = [];
/** In each nonce, because a user may be a bystander several times. */
const run = crypto.randomUUID();
let stopped = false;
let pauseMs = PAUSE_MS;
let warmMutations = WARM_MUTATIONS;
/** The mutation in flight: its count, and callbacks for its answer and for the Transition that shows it. */
let awaited: { readonly n: number; answered: () => void; shown: () => void } | null = null;

function failed(what: string): void {
  if (!stopped && failures.length < FAILURES_MAX) failures.push(what);
}

/** Lateness of its own pauses, which shows how busy the machine is. */
const late = new Stopwatch(PAUSE_MS);

async function pause(): Promise<void> {
  const until = performance.now() + pauseMs;
  await new Promise((resolve) => setTimeout(resolve, pauseMs));
  late.note(Math.max(0, performance.now() - until));
}

async function askQueries(port: number, token: string): Promise<void> {
  for (let nonce = 0; !stopped; nonce++) {
    try {
      using connection = await RawHttp.connect(port);
      for (; !stopped; nonce++) {
        query.begin();
        const body = JSON.stringify({ path: "bystander:look", args: { nonce: `${run} ${nonce}` } });
        const headers = { Authorization: `Bearer ${token}` };
        const answer = await connection.post("/api/query", body, { headers });
        query.end();
        if (answer.status !== 200) failed(`query: ${answer.status} ${answer.body.slice(0, 200)}`);
        await pause();
      }
    } catch (error) {
      query.end();
      failed(`query: ${error}`);
      await pause();
    }
  }
}

function onMessage(message: ServerMessage): void {
  switch (message.type) {
    case "MutationResponse":
      if (!message.success) failed(`mutation: ${message.errorMessage}`);
      awaited?.answered();
      if (!message.success) awaited?.shown();
      return;
    case "Transition":
      for (const modification of message.modifications) {
        if (modification.type === "QueryUpdated" && Number(modification.value) >= (awaited?.n ?? Infinity)) {
          awaited?.shown();
        } else if (modification.type === "QueryFailed") failed(`shown: ${modification.errorMessage}`);
      }
      return;
    case "FatalError":
    case "AuthError":
      return failed(`${message.type}: ${message.error}`);
    default:
      return;
  }
}

async function write(port: number, token: string, onReady: () => void): Promise<void> {
  const gone = Promise.withResolvers<void>();
  await using socket = await RawWebSocket.connect({
    port,
    path: "/api/sync",
    onText: (text) => {
      if (text.startsWith('{"type":"Ping"')) return socket.send('{"type":"Pong"}');
      onMessage(JSON.parse(text));
    },
    onClose: (code) => {
      failed(`socket: closed with ${code}`);
      gone.resolve();
    },
  });
  const send = (message: Record<string, unknown>) => socket.send(JSON.stringify(message));
  const sessionId = crypto.randomUUID();
  send({ type: "Connect", sessionId, connectionCount: 0, lastCloseReason: null, clientVersion: "bystander" });
  send({ type: "Authenticate", baseVersion: 0, token });
  const modifications = [{ type: "Add", queryId: 1, udfPath: "bystander:mine", args: {} }];
  send({ type: "ModifyQuerySet", baseVersion: 0, newVersion: 1, modifications });
  // Above the numbers of an earlier bystander of the same user.
  const before = Date.now();
  for (let count = 1; !stopped; count++) {
    const n = before + count;
    const answered = Promise.withResolvers<void>();
    const seen = Promise.withResolvers<void>();
    awaited = {
      n,
      answered: () => (mutation.end(), answered.resolve()),
      shown: () => (shown.end(), seen.resolve()),
    };
    mutation.begin();
    shown.begin();
    send({ type: "Mutation", requestId: n, udfPath: "bystander:write", args: { n } });
    await Promise.race([Promise.all([answered.promise, seen.promise]), gone.promise]);
    awaited = null;
    if (count === warmMutations) onReady();
    await pause();
  }
}

function served(): Served {
  return { queries: query.ended, mutations: mutation.ended };
}

function stop(): void {
  stopped = true;
  const waits: Waits = {
    query: query.waits,
    mutation: mutation.waits,
    shown: shown.waits,
    late: late.waits,
    failures,
  };
  self.postMessage({ type: "stopped", waits } satisfies FromBystander);
}

self.onmessage = ({ data }: MessageEvent<ToBystander>) => {
  if (data.type === "stop") return stop();
  if (data.type === "count") {
    return self.postMessage({ type: "counted", served: served() } satisfies FromBystander);
  }
  const { port, token, isMeasured } = data;
  if (!isMeasured) {
    pauseMs = UNMEASURED_PAUSE_MS;
    warmMutations = UNMEASURED_WARM_MUTATIONS;
  }
  let reported = false;
  const ready = () => {
    reported = true;
    for (const watch of [query, mutation, shown, late]) watch.reset();
    self.postMessage({ type: "started" } satisfies FromBystander);
  };
  const owned = Promise.all([askQueries(port, token), write(port, token, ready)]);
  owned.catch((error) => {
    if (reported) failed(String(error));
    else self.postMessage({ type: "failed", message: String(error) } satisfies FromBystander);
  });
};
