/** A leader with a host that runs nothing, and followers that connect to it. */
import {
  Leader,
  LeaderCalls,
  LeaderConnection,
  type LeaderConnectionOptions,
  type LeaderHost,
} from "../../../mod/cluster/mod.ts";
import type { CommitEntry } from "../../../mod/engine/types.ts";
import type { ServedApp } from "../../../mod/functions/host/mod.ts";
import type { MutationAnswer, MutationCall } from "../../../mod/functions/host_port.ts";
import { anonymous } from "../../../mod/functions/identity.ts";

export const APP: ServedApp = { version: "abc", functions: [], crons: [], routes: [] };

export const DONE = {
  outcome: { ok: true, value: '"é\\n"', logLines: ["logged"] },
  ts: 2,
  replayed: false,
} as const;

/** @param requestId `null` for a call without a replay key. */
export function mutation(requestId: number | null): MutationCall {
  const replay = requestId === null ? {} : { replay: { sessionId: "s", requestId } };
  return { udfPath: "a:b", args: { text: "ü\n" }, identity: anonymous, origin: "client", ...replay };
}

/** Keeps the mutations it receives. The test answers them. */
export class HostDouble implements LeaderHost {
  ts = 1;
  readonly code = { app: APP };
  readonly swaps = { setPeers: () => {} };
  readonly commits = { onGroup: (listener: () => void) => void (this.#onGroup = listener) };
  readonly asked: { readonly call: MutationCall; readonly answer: (answer: MutationAnswer) => void }[] = [];
  #onCommits: (entries: readonly CommitEntry[]) => void = () => {};
  #onGroup: () => void = () => {};
  #onReload: () => void = () => {};

  onCommits(listener: (entries: readonly CommitEntry[]) => void): void {
    this.#onCommits = listener;
  }

  onReload(listener: () => void): void {
    this.#onReload = listener;
  }

  mutate(call: MutationCall): Promise<MutationAnswer> {
    const { promise, resolve } = Promise.withResolvers<MutationAnswer>();
    this.asked.push({ call, answer: resolve });
    return promise;
  }

  act() {
    return Promise.resolve({ ok: true as const, value: "1", logLines: [] });
  }

  commit(): void {
    this.ts++;
    this.#onCommits([{ ts: this.ts, at: 0, changes: [] }]);
    this.#onGroup();
  }

  /** Skips commits, as a reload after a lost writer. */
  skip(): void {
    this.ts += 5;
    this.#onReload();
  }
}

export class LinkWorld implements AsyncDisposable {
  readonly host = new HostDouble();
  readonly listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly log: string[] = [];
  readonly leader: Leader;
  readonly #connections: LeaderConnection[] = [];

  constructor({ admits = () => Promise.resolve(true) }: { readonly admits?: () => Promise<boolean> } = {}) {
    this.leader = new Leader({
      host: this.host,
      secret: "right",
      admits,
      log: (_level, message, fields) => this.log.push(`${message} ${fields?.error}`),
    });
    this.leader.listen(this.listener);
  }

  connect(): Promise<Deno.TcpConn> {
    return Deno.connect({ hostname: "127.0.0.1", port: this.listener.addr.port });
  }

  async follow(
    calls: LeaderCalls,
    options: Partial<LeaderConnectionOptions> = {},
  ): Promise<LeaderConnection> {
    const hello = { name: "f", commits: true };
    const conn = await this.connect();
    const connection = await LeaderConnection.open({ conn, secret: "right", hello, calls, ...options });
    this.#connections.push(connection);
    return connection;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#connections) connection.close();
    await this.leader[Symbol.asyncDispose]();
  }
}
