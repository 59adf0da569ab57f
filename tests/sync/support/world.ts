/** A hub on the in-memory host with a controlled clock: the base of most tests of the hub. */
import { FakeClock } from "../../support/fake_clock.ts";
import { FakeAuthenticator } from "./fake_authenticator.ts";
import { type MemoryFunction, MemoryHost, type MemoryHostOptions } from "./memory_host.ts";
import { TestSocket } from "./test_socket.ts";
import { UserError } from "../../../mod/errors.ts";
import { Hub, type HubOptions } from "../../../mod/sync/hub.ts";
import { ArgsError } from "./memory_host.ts";

/** Queries every world has. */
const queries: Record<string, MemoryFunction> = {
  get: (ctx, { key }) => ctx.get(String(key)) ?? null,
  list: (ctx) => ctx.range("", "~"),
  sum: (ctx) => Number(ctx.get("a") ?? 0) + Number(ctx.get("b") ?? 0),
  me: (ctx) => ({ principal: ctx.principal(), value: ctx.get("a") ?? null }),
  session: (ctx) => ({ session: ctx.session(), value: ctx.get("a") ?? null }),
  /** Personal only while `private` is set. */
  sometimesMe: (ctx) => ctx.get("private") ? `${ctx.principal()} ${ctx.get("a")}` : `all ${ctx.get("a")}`,
  now: (ctx) => ctx.now(),
  failing: (ctx) => {
    if (ctx.get("fail") === "user") throw new UserError("no_luck", "No luck today", { tries: 3 });
    if (ctx.get("fail") === "bug") throw new Error("secret detail");
    if (ctx.get("fail") === "args") throw new ArgsError("args.x: Required");
    return ctx.get("a") ?? null;
  },
  logging: (ctx) => {
    ctx.log("[INFO] looked");
    return ctx.get("a") ?? null;
  },
};

const mutations: Record<string, MemoryFunction> = {
  set: (ctx, { key, value }) => {
    ctx.log("[INFO] setting");
    ctx.set(String(key), value);
    return { key };
  },
  add: (ctx, { key }) => {
    const value = Number(ctx.get(String(key)) ?? 0) + 1;
    ctx.set(String(key), value);
    return value;
  },
  nothing: () => "done",
  fail: () => {
    throw new UserError("refused", "Refused", [1]);
  },
  bug: (ctx) => {
    ctx.set("a", "never");
    throw new Error("secret detail");
  },
  who: (ctx) => ctx.principal(),
};

export interface WorldOptions extends MemoryHostOptions {
  readonly dev?: boolean;
  readonly memoryBytes?: number;
  /** The newest commit of the process whose commits the hub receives. */
  readonly newest?: HubOptions["newest"];
  readonly log?: HubOptions["log"];
}

export class World {
  readonly clock = new FakeClock();
  readonly authenticator = new FakeAuthenticator();
  readonly host: MemoryHost;
  readonly hub: Hub;

  constructor({ dev = false, memoryBytes, newest, log, ...options }: WorldOptions = {}) {
    this.host = new MemoryHost({
      ...options,
      queries: { ...queries, ...options.queries },
      mutations: { ...mutations, ...options.mutations },
    });
    this.hub = new Hub({
      host: this.host,
      authenticator: this.authenticator,
      dev,
      clock: this.clock,
      later: queueMicrotask,
      ...(memoryBytes !== undefined && { memoryBytes }),
      ...(newest && { newest }),
      ...(log && { log }),
    });
  }

  socket(): TestSocket {
    return new TestSocket(this.hub);
  }

  /** A connected socket, optionally with diffs. */
  connected(options: Parameters<TestSocket["connect"]>[0] = {}): TestSocket {
    const socket = this.socket();
    socket.connect(options);
    return socket;
  }
}
