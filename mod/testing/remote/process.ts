/**
 * The process of test servers for tests in Node. Receives requests on standard input, responds on standard output, and ends
 * with the test.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { FunctionError } from "../../client/mod.ts";
import type { SocketHandle } from "../../sync/mod.ts";
import { callerFacts, type TestCaller } from "../test_caller.ts";
import { loadFoldersWith } from "../load_test_app.ts";
import { createTestServer, remoteAccess, type TestServer } from "../test_server.ts";
import { loadBundled } from "./bundled_app.ts";
import { applyChain, decodeValue, encodeValue } from "./chains.ts";
import {
  MESSAGE_PREFIX,
  type OperationName,
  type Operations,
  type ProcessMessage,
  type ProcessRequest,
  type WireError,
  type WireRequest,
  type WireResponse,
} from "./messages.ts";

function toRequest({ url, method, headers, body }: WireRequest): Request {
  return new Request(url, {
    method,
    headers: headers.map(([name, value]): [string, string] => [name, value]),
    ...(body !== null && { body: Uint8Array.fromBase64(body) }),
  });
}

async function toWire(response: Response): Promise<WireResponse> {
  const { status } = response;
  const body = new Uint8Array(await response.arrayBuffer()).toBase64();
  return { status, headers: [...response.headers], body };
}

/** A running callback: its transaction, and the function that ends it. */
interface Work {
  readonly ctx: unknown;
  /** Runs code in the context of the transaction. */
  readonly inside: <T>(code: () => T) => T;
  readonly end: PromiseWithResolvers<unknown>;
}

const servers = new Map<number, TestServer>();
const works = new Map<number, Work>();
const sockets = new Map<number, SocketHandle>();

const encoder = new TextEncoder();

function send(message: ProcessMessage): void {
  const bytes = encoder.encode(`${MESSAGE_PREFIX}${JSON.stringify(message)}\n`);
  for (let sent = 0; sent < bytes.length;) sent += Deno.stdout.writeSync(bytes.subarray(sent));
}

function serverOf(number: number): TestServer {
  const server = servers.get(number);
  if (server === undefined) throw new TypeError("The test server is closed");
  return server;
}

function workOf(number: number): Work {
  const work = works.get(number);
  if (work === undefined) throw new TypeError("ctx was used after its callback ended");
  return work;
}

type Answers = {
  readonly [Name in OperationName]: (
    args: Operations[Name]["args"],
  ) => Promise<Operations[Name]["result"]> | Operations[Name]["result"];
};

const facts = (caller: TestCaller) => caller[callerFacts];

const answers: Answers = {
  async open({ server, functionsDir, ...options }) {
    servers.set(server, await createTestServer({ functionsDir, ...options }));
    return null;
  },
  async close({ server }) {
    const closed = servers.get(server);
    servers.delete(server);
    await closed?.close();
    return null;
  },
  run: ({ server, kind, call }) => serverOf(server)[remoteAccess].run(kind, call),
  asUser: async ({ server, user }) => facts(await serverOf(server).asUser(user)),
  asAdmin: async ({ server, email }) => facts(await serverOf(server).asAdmin(email)),
  endSession({ server, sessionId }) {
    serverOf(server).endSession({ sessionId } as TestCaller);
    return null;
  },
  async advance({ server, ms }) {
    await serverOf(server).advance(ms);
    return null;
  },
  async settled({ server }) {
    await serverOf(server).settled();
    return null;
  },
  async fetch({ server, request }) {
    return await toWire(await serverOf(server).fetch(toRequest(request)));
  },
  async upload({ server, url, body, type, name }) {
    const blob = new Blob([Uint8Array.fromBase64(body)], { type });
    return await serverOf(server).upload(url, blob, name === undefined ? {} : { name });
  },
  work: ({ server, work }) =>
    serverOf(server).run((ctx) => {
      const end = Promise.withResolvers<unknown>();
      works.set(work, { ctx, inside: AsyncLocalStorage.snapshot() as Work["inside"], end });
      send({ work });
      return end.promise;
    }),
  async step({ work, chain, list }) {
    const { ctx, inside } = workOf(work);
    return encodeValue(
      await inside(() => {
        const value = applyChain(ctx, chain);
        return list ? Array.fromAsync(value as AsyncIterable<unknown>) : value;
      }),
    );
  },
  workEnds({ work, value, error }) {
    const { end } = workOf(work);
    works.delete(work);
    if (error === undefined) end.resolve(value === undefined ? null : decodeValue(value));
    else end.reject(Object.assign(new Error(error.message), { name: error.name }));
    return null;
  },
  socketOpen({ server, socket }) {
    const closed = (code: number, reason: string) => {
      sockets.delete(socket);
      send({ socket, closed: { code, reason } });
    };
    const handle = serverOf(server)[remoteAccess].connect({
      bufferedAmount: 0,
      acknowledgedBytes: null,
      setReceiveWindow: () => {},
      cut: () => closed(1006, ""),
      send: (text) => send({ socket, text }),
      close: closed,
    });
    if (handle === null) closed(1013, "");
    else sockets.set(socket, handle);
    return null;
  },
  socketSend({ socket, text }) {
    sockets.get(socket)?.receive(text);
    return null;
  },
  socketClose({ socket }) {
    sockets.get(socket)?.closed();
    sockets.delete(socket);
    return null;
  },
};

function wireError(error: unknown): WireError {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const { name, message, stack } = error;
  const call = error instanceof FunctionError
    ? {
      udfPath: error.udfPath,
      errorData: error.code === null ? null : { code: error.code, data: error.data },
    }
    : undefined;
  return { name, message, ...(stack !== undefined && { stack }), ...(call && { call }) };
}

async function answer({ id, name, args }: ProcessRequest): Promise<void> {
  const now = () => "server" in args ? servers.get(args.server)?.now() : undefined;
  try {
    const value: unknown = await (answers[name] as (args: unknown) => unknown)(args);
    send({ answer: id, ...withNow(now()), value: value ?? null });
  } catch (error) {
    send({ answer: id, ...withNow(now()), error: wireError(error) });
  }
}

function withNow(now: number | undefined): { readonly now?: number } {
  return now === undefined ? {} : { now };
}

/** Starts requests in the order of arrival. Ends when the test's process does. */
async function serve(): Promise<void> {
  let text = "";
  for await (const part of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    text += part;
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) void answer(JSON.parse(line) as ProcessRequest);
  }
  await Promise.all([...servers.values()].map((server) => server.close().catch(() => {})));
}

if (import.meta.main) {
  loadFoldersWith(loadBundled);
  await serve();
  Deno.exit(0);
}
