/**
 * Accounts: sign-ins beside the bare password hash, refreshes beside a bare durable HTTP handler, Authenticate beside a bare
 * echo, and the time from a sign-out to the last of many sockets that hears of it.
 */
import { PasswordHasher } from "../../mod/auth/passwords.ts";
import type { Tokens } from "../../mod/auth/tokens/session_tokens.ts";
import { authLimits } from "../../mod/auth/limits.ts";
import { type BenchContext, benchFunctions } from "../context.ts";
import { RawHttp } from "../../tests/support/processes/raw_http.ts";
import { RawWebSocket } from "../../tests/support/processes/raw_websocket.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";
import { median, percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const PASSWORD = "correct horse battery";
/** The longest a session's end may take to reach the last of a thousand sockets. */
const REVOCATION_MS = 50;

export async function accountRows(context: BenchContext): Promise<Row[]> {
  // Every request comes from an address of its own: rate limits are not what is measured.
  const server = await context.serverWith(["--trusted-proxy", "127.0.0.1"], benchFunctions);
  const clients = 16;
  const users: User[] = [];
  for (let i = 0; i < clients; i++) users.push(await User.signUp(server, i));
  try {
    return [
      await signInRow(context, users),
      await refreshRow(context, users),
      await authenticateRow(context, { server, user: users[0] }),
      await revocationRow(context, server),
    ];
  } finally {
    for (const user of users) user[Symbol.dispose]();
  }
}

/** A user on a connection of their own. */
class User implements Disposable {
  readonly email: string;
  readonly #connection: RawHttp;
  readonly #index: number;
  tokens: Tokens | null = null;
  #requests = 0;

  private constructor(email: string, connection: RawHttp, index: number) {
    this.email = email;
    this.#connection = connection;
    this.#index = index;
  }

  static async signUp(server: ServerProcess, index: number): Promise<User> {
    const user = new User(`user-${index}@example.com`, await RawHttp.connect(server.port), index);
    user.tokens = await user.post("signup", { email: user.email, password: PASSWORD });
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
    this.tokens = await this.post("signin", { email: this.email, password: PASSWORD });
  }

  async refresh(): Promise<void> {
    this.tokens = await this.post("refresh", { refreshToken: this.tokens?.refreshToken });
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
  }
}

/** Calls per second of workers that each make one call after the other. */
async function rate(workers: readonly (() => Promise<unknown>)[], durationMs: number): Promise<number> {
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

/** Medians of rounds in turns, and of their ratios. */
async function compared(
  context: BenchContext,
  { measured, control }: {
    readonly measured: () => Promise<number>;
    readonly control: () => Promise<number>;
  },
) {
  const rounds = context.full ? 10 : 3;
  const pairs: [number, number][] = [];
  await measured();
  for (let round = 0; round < rounds; round++) pairs.push([await measured(), await control()]);
  return {
    measured: median(pairs.map(([value]) => value)),
    control: median(pairs.map(([, value]) => value)),
    ratio: median(pairs.map(([value, other]) => value / other)),
  };
}

async function signInRow(context: BenchContext, users: readonly User[]): Promise<Row> {
  const passwords = new PasswordHasher({ queuedMax: users.length });
  const hashing = Array.from({ length: authLimits.hashesAtOnceMax }, () => () => passwords.hash(PASSWORD));
  const result = await compared(context, {
    measured: () => rate(users.map((user) => () => user.signIn()), 2_000),
    control: () => rate(hashing, 2_000),
  });
  return {
    name: "sign-ins per second, most of it spent in the hash",
    measured: `${result.measured.toFixed(1)}/s`,
    control: `${result.control.toFixed(1)} bare hashes/s`,
    ratio: result.ratio,
    target: { atLeast: 0.7 },
    details: result,
  };
}

async function refreshRow(context: BenchContext, users: readonly User[]): Promise<Row> {
  const port = await context.control("sqlite_server", ["1000"]);
  const controls = await Promise.all(users.map(() => RawHttp.connect(port)));
  const body = JSON.stringify({ args: { from_id: 1, to_id: 2, amount: 1 } });
  try {
    const result = await compared(context, {
      measured: () => rate(users.map((user) => () => user.refresh()), 1_000),
      control: () => rate(controls.map((control) => () => control.post("/api/mutation", body)), 1_000),
    });
    return {
      name: "refreshes per second",
      measured: `${result.measured.toFixed(0)}/s`,
      control: `${result.control.toFixed(0)} bare durable HTTP requests/s`,
      ratio: result.ratio,
      target: null,
      details: result,
    };
  } finally {
    for (const control of controls) control[Symbol.dispose]();
  }
}

async function authenticateRow(
  context: BenchContext,
  { server, user }: { readonly server: ServerProcess; readonly user: User | undefined },
): Promise<Row> {
  const token = user?.tokens?.accessToken;
  const echoPort = await context.control("websocket_server");
  const sockets: RawWebSocket[] = [];
  const talk = async (port: number, path: string, answers: string) => {
    let answered: () => void = () => {};
    const socket = await RawWebSocket.connect({
      port,
      path,
      onText: (text) => {
        if (text.startsWith(answers)) answered();
      },
    });
    sockets.push(socket);
    let baseVersion = 0;
    return async () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      answered = resolve;
      socket.send(JSON.stringify({ type: "Authenticate", baseVersion: baseVersion++, token }));
      await promise;
    };
  };
  const path = "/api/sync";
  const clients = Array.from({ length: 16 });
  const authenticating = await Promise.all(
    clients.map(() => talk(server.port, path, '{"type":"Transition"')),
  );
  const echoing = await Promise.all(clients.map(() => talk(echoPort, "/echo", '{"type":"Authenticate"')));
  try {
    const result = await compared(context, {
      measured: () => rate(authenticating, 1_000),
      control: () => rate(echoing, 1_000),
    });
    return {
      name: "WebSocket Authenticate per second",
      measured: `${result.measured.toFixed(0)}/s`,
      control: `${result.control.toFixed(0)} echoes/s`,
      ratio: result.ratio,
      target: null,
      details: result,
    };
  } finally {
    for (const socket of sockets) await socket.close();
  }
}

/** From the moment the sign-out is sent, its commit included, to AuthError at each of a thousand sockets. */
async function revocationRow(context: BenchContext, server: ServerProcess): Promise<Row> {
  const sockets = 1_000;
  const rounds = context.full ? 5 : 2;
  const delays: number[] = [];
  const lasts: number[] = [];
  const commits: number[] = [];
  for (let round = 0; round < rounds; round++) {
    using user = await User.signUp(server, 100 + round);
    const heardAt: number[] = [];
    const heard = Promise.withResolvers<void>();
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
          heardAt.push(performance.now());
          if (heardAt.length === sockets) heard.resolve();
        },
      });
      socket.send(JSON.stringify({ type: "Authenticate", baseVersion: 0, token: user.tokens?.accessToken }));
      open.push(socket);
    }
    await Promise.all(ready);
    const sentAt = performance.now();
    await user.post("signout", { refreshToken: user.tokens?.refreshToken });
    commits.push(performance.now() - sentAt);
    await heard.promise;
    delays.push(...heardAt.map((at) => at - sentAt));
    lasts.push(Math.max(...heardAt) - sentAt);
    await Promise.all(open.map((socket) => socket.closed));
  }
  const p99 = percentile(delays, 0.99);
  return {
    name: "sign-out to AuthError at 1,000 sockets: ms",
    measured: `p99 ${p99.toFixed(1)} ms`,
    control: `answer to the sign-out ${median(commits).toFixed(1)} ms`,
    ratio: p99,
    target: { atMost: REVOCATION_MS },
    details: { p50Ms: median(delays), p99Ms: p99, lastMs: median(lasts), answerMs: median(commits) },
  };
}
