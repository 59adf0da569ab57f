/**
 * The log process: owns the log's database, and nobody waits for it. It may read and write the data folder, and ends when its
 * input does.
 */
import { writeAll } from "../../../kit/durable_files.ts";
import { encodeJsonLine, readJsonLines } from "../../../kit/processes/json_lines.ts";
import { logLimits } from "../../limits.ts";
import { LogKeeper } from "./log_keeper.ts";
import type { FromLogProcess, ToLogProcess } from "./messages.ts";

/** What is to be said and has not left. */
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
  if (start.type !== "Start") throw new TypeError("The first message has to say where the log is");
  using keeper = new LogKeeper({ ...start, now: Date.now, say: (message) => unsent.push(message) });
  const tidying = setInterval(() => {
    keeper.tidy();
    send().catch(() => Deno.exit(1));
  }, logLimits.tidyMs);
  for await (const line of lines) {
    const message = JSON.parse(line) as ToLogProcess;
    if (message.type === "Start") continue;
    keeper.take(message);
    // Nothing new is taken before what was said has left: a server that does not listen is not flooded.
    if (unsent.length > 0) await send();
  }
  clearInterval(tidying);
}

// Signals for the server reach its whole process group: what ran last is written all the same, and the input ends with it.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) Deno.addSignalListener(signal, () => {});

await serve();
Deno.exit(0);
