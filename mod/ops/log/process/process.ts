/**
 * Entry point of the log process, which owns the log's database. It may access the data folder only, and exits when its input
 * ends.
 */
import { writeAll } from "../../../kit/durable_files.ts";
import { encodeJsonLine, readJsonLines } from "../../../kit/processes/json_lines.ts";
import { logLimits } from "../../limits.ts";
import { LogKeeper } from "./log_keeper.ts";
import type { FromLogProcess, ToLogProcess } from "./messages.ts";

/** Messages to be sent. */
let unsent: FromLogProcess[] = [];
let sending: Promise<void> = Promise.resolve();

function send(): Promise<void> {
  return sending = sending.then(async () => {
    const messages = unsent;
    unsent = [];
    for (const message of messages) await writeAll(Deno.stdout, encodeJsonLine(message));
  });
}

async function serve(): Promise<void> {
  const lines = readJsonLines(Deno.stdin.readable, logLimits.messageCharsMax);
  const first = await lines.next();
  if (first.done === true) return;
  const start = JSON.parse(first.value) as ToLogProcess;
  if (start.type !== "Start") throw new TypeError("The first message must be Start");
  using keeper = new LogKeeper({ ...start, now: Date.now, say: (message) => unsent.push(message) });
  const tidying = setInterval(() => {
    keeper.cleanUp();
    send().catch(() => Deno.exit(1));
  }, logLimits.tidyMs);
  for await (const line of lines) {
    const message = JSON.parse(line) as ToLogProcess;
    if (message.type === "Start") continue;
    keeper.take(message);
    // Wait until all messages are sent, so that a slow server is not flooded.
    if (unsent.length > 0) await send();
  }
  clearInterval(tidying);
}

// Signals reach the whole process group. Ignore them: the input ends with the server, after the last runs were received.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) Deno.addSignalListener(signal, () => {});

await serve();
Deno.exit(0);
