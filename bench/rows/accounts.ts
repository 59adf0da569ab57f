/**
 * Accounts: sign-ins beside the bare password hash, refreshes beside a durable HTTP request, Authenticate messages beside
 * an echo, and the delay from a sign-out to AuthError at many sockets.
 */
import { PasswordHasher } from "../../mod/auth/passwords.ts";
import type { Tokens } from "../../mod/auth/tokens/session_tokens.ts";
import { authLimits } from "../../mod/auth/limits.ts";
import { type BenchContext, benchFunctions } from "../context.ts";
import { RawHttp } from "../../tests/support/processes/raw_http.ts";
import { RawWebSocket } from "../../tests/support/processes/raw_websocket.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";
import { alternate } from "../support/rounds.ts";
import { median, percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const CLIENTS = 16;
const PASSWORD = "correct horse battery";
const REVOCATION_MS_MAX = 50;

export async function accountRows(context: BenchContext): Promise<Row[]> {
  // Each request names a different client address, so that rate limits do not apply.
  const server = await context.server(benchFunctions, { flags: ["--trusted-proxy", "127.0.0.1"] });
  const users: User[] = [];
  for (let i = 0; i < CLIENTS; i++) users.push(await User.signUp(server, i));
  try {
    return [
      await signInRow(context, users),
      await refreshRow(context, users),
      await authenticateRow(context, server, users[0]),
      await revocationRow(context, server),
    ];
  } finally {
    for (const user of users) user[Symbol.dispose]();
  }
}

/** A signed-in user with a connection. */
class User implements Disposable {
  readonly #email: string;
  readonly #connection: RawHttp;
  readonly #index: number;
  tokens: Tokens | null = null;
  #requests = 0;

  private constructor(connection: RawHttp, index: number) {
    this.#email = `user-${index}@example.com`;
    this.#connection = connection;
    this.#index = index;
  }

  static async signUp(server: ServerProcess, index: number): Promise<User> {
    const user = new User(await RawHttp.connect(server.port), index);
    user.tokens = await user.post("signup", { email: user.#email, password: PASSWORD });
    return user;
  }

  async post(endpoint: string, body: unknown): Promise<Tokens> {
    const n = this.#requests++;
    const headers = { "X-Forwarded-For": `10.${this.#index}.${(n >> 8) & 255}.${n & 255}` };
    const answer = await this.#connection.post(`/api/auth/${endpoint}`, JSON.stringify(body), { headers });
    if (answer.status !== 200) throw new Error(`${endpoint}: ${answer.body}`);
    return JSON.parse(answer.body);
  }

  async signIn(): Promise<void> {
    this.tokens = await this.post("signin", { email: this.#email, password: PASSWORD });
  }

  async refresh(): Promise<void> {
    this.tokens = await this.post("refresh", { refreshToken: this.tokens?.refreshToken });
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
  }
}

/** Workers that each make one call after the other. */
type Workers = readonly (() => Promise<unknown>)[];

/** Returns the calls per second. */
async function rate(workers: Workers, durationMs: number): Promise<number> {
  const endAt = performance.now() + durationMs;
  let calls = 0;
  await Promise.all(workers.map(async (work) => {
    while (performance.now() < endAt) {
      await work();
      calls++;
    }
  }));
  return calls / (durationMs / 1000);
}

/** Compares the rates of two groups of workers. */
async function rateRow(
  context: BenchContext,
  { name, durationMs = 1_000, digits = 0, ours, control, controlUnit, target = null }: {
    readonly name: string;
    readonly durationMs?: number;
    readonly digits?: number;
    readonly ours: Workers;
    readonly control: Workers;
    readonly controlUnit: string;
    readonly target?: Row["target"];
  },
): Promise<Row> {
  const rates = await alternate(context.full ? 10 : 3, {
    ours: () => rate(ours, durationMs),
    control: () => rate(control, durationMs),
  });
  return {
    name,
    measured: `${median(rates.ours).toFixed(digits)}/s`,
    control: `${median(rates.control).toFixed(digits)} ${controlUnit}`,
    ratio: median(rates.ours.map((value, round) => value / (rates.control[round] ?? NaN))),
    target,
    details: rates,
  };
}

async function signInRow(context: BenchContext, users: readonly User[]): Promise<Row> {
  const passwords = new PasswordHasher({ queuedMax: users.length });
  return await rateRow(context, {
    name: "sign-ins per second (dominated by the password hash)",
    durationMs: 2_000,
    digits: 1,
    ours: users.map((user) => () => user.signIn()),
    control: Array.from({ length: authLimits.hashesAtOnceMax }, () => () => passwords.hash(PASSWORD)),
    controlUnit: "bare hashes/s",
    target: { atLeast: 0.7 },
  });
}

async function refreshRow(context: BenchContext, users: readonly User[]): Promise<Row> {
  const { port } = await context.control("sqlite_server", [1_000]);
  const connections = await Promise.all(users.map(() => RawHttp.connect(port)));
  const body = JSON.stringify({ args: { from_id: 1, to_id: 2, amount: 1 } });
  try {
    return await rateRow(context, {
      name: "refreshes per second",
      ours: users.map((user) => () => user.refresh()),
      control: connections.map((connection) => () => connection.post("/api/mutation", body)),
      controlUnit: "bare durable HTTP requests/s",
    });
  } finally {
    for (const connection of connections) connection[Symbol.dispose]();
  }
}

async function authenticateRow(
  context: BenchContext,
  server: ServerProcess,
  user: User | undefined,
): Promise<Row> {
  const token = user?.tokens?.accessToken;
  const control = await context.control("websocket_server");
  await using sockets = new AsyncDisposableStack();
  const connect = async (port: number, path: string, answerPrefix: string) => {
    let onAnswer: () => void = () => {};
    const socket = sockets.use(
      await RawWebSocket.connect({
        port,
        path,
        onText: (text) => {
          if (text.startsWith(answerPrefix)) onAnswer();
        },
      }),
    );
    let baseVersion = 0;
    return async () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      onAnswer = resolve;
      socket.send(JSON.stringify({ type: "Authenticate", baseVersion: baseVersion++, token }));
      await promise;
    };
  };
  const clients = Array.from({ length: CLIENTS });
  return await rateRow(context, {
    name: "WebSocket Authenticate per second",
    ours: await Promise.all(clients.map(() => connect(server.port, "/api/sync", '{"type":"Transition"'))),
    control: await Promise.all(clients.map(() => connect(control.port, "/echo", '{"type":"Authenticate"'))),
    controlUnit: "echoes/s",
  });
}

/** Measures from sending the sign-out, including its commit, to AuthError at each socket. */
async function revocationRow(context: BenchContext, server: ServerProcess): Promise<Row> {
  const sockets = 1_000;
  const rounds = context.full ? 5 : 2;
  const delays: number[] = [];
  const last: number[] = [];
  const answers: number[] = [];
  for (let round = 0; round < rounds; round++) {
    using user = await User.signUp(server, 100 + round);
    const receivedAt: number[] = [];
    const received = Promise.withResolvers<void>();
    const ready: Promise<void>[] = [];
    const open: RawWebSocket[] = [];
    for (let i = 0; i < sockets; i++) {
      const authenticated = Promise.withResolvers<void>();
      ready.push(authenticated.promise);
      const socket = await RawWebSocket.connect({
        port: server.port,
        path: "/api/sync",
        onText: (text) => {
          if (text.startsWith('{"type":"Transition"')) authenticated.resolve();
          if (!text.startsWith('{"type":"AuthError"')) return;
          receivedAt.push(performance.now());
          if (receivedAt.length === sockets) received.resolve();
        },
      });
      socket.send(JSON.stringify({ type: "Authenticate", baseVersion: 0, token: user.tokens?.accessToken }));
      open.push(socket);
    }
    await Promise.all(ready);
    const sentAt = performance.now();
    await user.post("signout", { refreshToken: user.tokens?.refreshToken });
    answers.push(performance.now() - sentAt);
    await received.promise;
    delays.push(...receivedAt.map((at) => at - sentAt));
    last.push(Math.max(...receivedAt) - sentAt);
    await Promise.all(open.map((socket) => socket.closed));
  }
  const p99 = percentile(delays, 0.99);
  return {
    name: "sign-out to AuthError at 1,000 sockets: ms",
    measured: `p99 ${p99.toFixed(1)} ms`,
    control: `answer to the sign-out ${median(answers).toFixed(1)} ms`,
    ratio: p99,
    target: { atMost: REVOCATION_MS_MAX },
    details: { p50Ms: median(delays), p99Ms: p99, lastMs: median(last), answerMs: median(answers) },
  };
}
