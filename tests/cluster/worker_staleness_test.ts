/** A worker that was busy while others committed: its first answers are not older than the state its callers have seen. */
import assert from "node:assert/strict";
import { ServerProcess } from "../support/processes/server_process.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { pause, until } from "../support/waiting.ts";
import { workersOf } from "./support/processes.ts";

const ROUNDS = 8;
/** Concurrent calls, so that each process receives some. */
const CALLS = 16;

Deno.test("[WK2] HC6 a worker that was stopped while a mutation was answered does not answer from before it", async () => {
  await using folder = new TempFolder();
  await using server = await ServerProcess.start({
    dataDir: folder.path,
    functions: "tests/client/functions",
    flags: ["--workers", "2"],
  });
  const call = async (kind: string, path: string, { args }: Call): Promise<unknown> => {
    const response = await fetch(`http://127.0.0.1:${server.port}/api/${kind}`, {
      method: "POST",
      body: JSON.stringify({ path, args }),
      // A new connection for each call, which the kernel assigns to one of the processes.
      headers: { connection: "close" },
      signal: AbortSignal.timeout(60_000),
    });
    const answer = await response.json();
    assert.equal(answer.status, "success", JSON.stringify(answer));
    return answer.value;
  };
  const numbers = () => call("query", "entries:numbers", { args: { author: "a" } }) as Promise<number[]>;
  const askEverywhere = () => Array.from({ length: CALLS }, numbers);
  await until(async () => (await workersOf(server.pid)).length === 1);
  const [worker = 0] = await workersOf(server.pid);
  let held = 0;
  for (let round = 1; round <= ROUNDS; round++) {
    await Promise.all(askEverywhere());
    Deno.kill(worker, "SIGSTOP");
    // Requests to the worker wait, and run when it continues. The first answer is from the other process.
    const writes = Array.from(
      { length: CALLS },
      (_, n) => call("mutation", "entries:append", { args: { author: "a", n: round * 50 + n } }),
    );
    const written = await Promise.any(writes);
    let answered = 0;
    const answers = askEverywhere().map((answer) => answer.finally(() => answered++));
    await pause(200);
    held += CALLS - answered;
    Deno.kill(worker, "SIGCONT");
    for (const shown of await Promise.all(answers)) {
      assert.ok(shown.includes(Number(written)), `${written} is not among ${shown}`);
    }
    await Promise.all(writes);
  }
  assert.ok(held > 0, "the worker was never asked");
});

interface Call {
  readonly args: Record<string, unknown>;
}
