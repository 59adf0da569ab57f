/** The page about the sync protocol: its frames, its differences and its client in Python. */
import assert from "node:assert/strict";
import { generatedModule } from "../../mod/functions/generated_module.ts";
import { applyDiff } from "../../mod/protocol/apply_diff.ts";
import type { StateVersion } from "../../mod/protocol/state_version.ts";
import { startTestServer, type TestServer, TestSocket } from "../auth/server/test_server.ts";
import { needs, onPath } from "../support/services.ts";
import { until } from "../support/waiting.ts";
import { codeBlocks, documentedApps, readPage, tableRows } from "./pages.ts";

const PAGE = "docs/protocol.md";

async function serverOfGuide(accessTokenMs: number): Promise<TestServer> {
  const functions: Record<string, string> = {};
  for (const [path, text] of (await documentedApps()).get("guide") ?? []) {
    if (path.startsWith("functions/")) functions[path.slice("functions/".length)] = text;
  }
  functions["_generated.ts"] = generatedModule(Object.keys(functions));
  return await startTestServer({ functions, accounts: { accessTokenMs } });
}

interface Frame {
  readonly type: string;
  readonly ts?: number;
  readonly startVersion?: StateVersion;
  readonly endVersion?: StateVersion;
}

/**
 * Parses frames without values of `ts`: the service commits, too. Checks that each transition continues the one before, and
 * that the response of a mutation precedes its transition.
 */
function checkedFrames(frames: readonly string[]): unknown[] {
  let version: StateVersion = { querySet: 0, identity: 0, ts: 0 };
  let committedTs = 0;
  for (const frame of frames) {
    const { type, ts, startVersion, endVersion }: Frame = JSON.parse(frame);
    if (type === "MutationResponse" && ts !== undefined) {
      assert.ok(ts > version.ts, frame);
      committedTs = Math.max(committedTs, ts);
    }
    if (startVersion === undefined || endVersion === undefined) continue;
    assert.deepEqual(startVersion, version);
    assert.ok(endVersion.ts >= Math.max(version.ts, committedTs), frame);
    version = endVersion;
  }
  assert.ok(committedTs > 0);
  return frames.map((frame) => JSON.parse(frame, (key, value) => key === "ts" ? 0 : value));
}

Deno.test("the frames of the page are those of a server", async () => {
  const blocks = (await codeBlocks(PAGE)).filter(({ language }) => language === "text");
  const lines = blocks.flatMap(({ text }) => text.trim().split("\n"));
  await using server = await serverOfGuide(900_000);
  await using socket = await TestSocket.open(`${server.url}/api/sync`);
  const received = () =>
    socket.messages.filter(({ type }) => type !== "Ping").map(({ arrivedAt: _, ...message }) => message);
  let expected = 0;
  for (const line of lines) {
    if (line.startsWith("< ")) expected++;
    else {
      // The frames before are the server's response to those before.
      await until(() => received().length >= expected);
      socket.send(JSON.parse(line.slice(2)));
    }
  }
  await until(() => received().length >= expected);
  assert.deepEqual(
    checkedFrames(received().map((message) => JSON.stringify(message))),
    checkedFrames(lines.filter((line) => line.startsWith("< ")).map((line) => line.slice(2))),
  );
  await socket.closed;
});

Deno.test("the diffs of the page produce the results shown with them", async () => {
  const rows = tableRows(await readPage(PAGE), "Result|Difference");
  assert.equal(rows.length, 5);
  for (const row of rows) {
    const [result, difference, after] = row.map((cell) => JSON.parse(cell.replaceAll("`", "")));
    assert.deepEqual(applyDiff(result, difference), after);
  }
});

/** Forwards connections to a server until they are cut. */
class Proxy implements AsyncDisposable {
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #open = new Set<Deno.Conn>();
  readonly #serving: Promise<void>;

  constructor(port: number) {
    this.#serving = this.#serve(port);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#listener.addr as Deno.NetAddr).port}`;
  }

  cut(): void {
    for (const conn of this.#open) conn.close();
    this.#open.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    this.cut();
    await this.#serving;
  }

  async #serve(port: number): Promise<void> {
    const piped: Promise<void>[] = [];
    for await (const conn of this.#listener) {
      const target = await Deno.connect({ hostname: "127.0.0.1", port });
      this.#open.add(conn).add(target);
      piped.push(pipe(conn, target), pipe(target, conn));
    }
    await Promise.all(piped);
  }
}

/** Ends when one of the two is closed. */
async function pipe(from: Deno.Conn, to: Deno.Conn): Promise<void> {
  const chunk = new Uint8Array(16_384);
  try {
    for (let size = await from.read(chunk); size !== null; size = await from.read(chunk)) {
      for (let sent = 0; sent < size;) sent += await to.write(chunk.subarray(sent, size));
    }
    await to.closeWrite();
  } catch {
    // Cut.
  }
}

const python = { name: "python3", find: () => onPath("python3"), hint: "a package of the system" };

Deno.test({
  ...needs(
    python,
    "the client in Python subscribes, runs mutations, refreshes its token and subscribes again after a cut",
  ),
  async fn() {
    const program = (await codeBlocks(PAGE)).find(({ language }) => language === "python");
    assert.ok(program !== undefined);
    await using server = await serverOfGuide(3_000);
    await using proxy = new Proxy(Number(new URL(server.url).port));
    const child = new Deno.Command("python3", {
      args: ["-c", program.text],
      env: { SYNCLINE_URL: proxy.url },
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const lines: string[] = [];
    const reading = (async () => {
      let text = "";
      for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
        const complete = (text += part).split("\n");
        text = complete.pop() ?? "";
        lines.push(...complete);
      }
    })();
    const printed = (line: string, from = 0) =>
      until(() => lines.indexOf(line, from) >= 0, { what: () => lines.join("\n") });
    const add = (points: number) =>
      server.post("/api/mutation", { path: "board:record", args: { game: "go", player: "Bob", points } });
    const scores = (...bobs: number[]) =>
      `scores [${[`["Ada", 3]`, ...bobs.map((points) => `["Bob", ${points}]`)].join(", ")}]`;
    try {
      await printed("recorded");
      assert.ok(lines.includes("user True"));
      assert.ok(
        lines.indexOf(scores()) < lines.indexOf("recorded"),
        "a mutation ends when its writes are shown",
      );
      await add(1);
      await printed(scores(1));
      const shown = () => lines.filter((line) => line === "user True").length;
      // Queries are shown again after each token refresh.
      const refreshed = async () => {
        const before = shown();
        await until(() => shown() > before);
      };
      // A cut during a refresh would sign the client out.
      await refreshed();
      proxy.cut();
      const before = lines.length;
      await printed("user True", before);
      await add(2);
      await printed(scores(1, 2));
      await refreshed();
      assert.ok(!lines.includes("user False"));
    } finally {
      child.kill();
      await child.status;
      await reading;
    }
  },
});
