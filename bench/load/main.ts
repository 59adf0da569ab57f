/** The process that makes the load: reads commands as lines from its input until that ends, answers on its output. */
import { lines } from "../../tests/support/processes/lines.ts";
import { RawGets } from "../support/raw_gets.ts";
import { Audience } from "./audience.ts";
import { callTimes } from "./call_times.ts";
import { httpLoop, sequentialCalls, webSocketLoop } from "./closed_loop.ts";
import type { LoadAnswer, LoadRequest } from "./commands.ts";
import { EventAudience } from "./event_audience.ts";
import { liveList } from "./live_list.ts";
import { LogReaders } from "./log_readers.ts";
import { pacedCalls, pacedTimes } from "./paced.ts";
import { relay } from "./relay.ts";
import { Returning } from "./returning.ts";
import { roomMembers } from "./room_members.ts";
import { streamReaders } from "./stream_readers.ts";

const audiences = new Map<string, Audience | EventAudience>();
let logReaders: LogReaders | null = null;
const returning = new Map<string, Returning>();

function audience(name: string): Audience | EventAudience {
  const found = audiences.get(name);
  if (found === undefined) throw new Error(`There is no audience "${name}"`);
  return found;
}

async function run(request: LoadRequest): Promise<unknown> {
  switch (request.command) {
    case "webSocketLoop":
      return await webSocketLoop(request.options);
    case "httpLoop":
      return await httpLoop(request.options);
    case "oneAtATime":
      return await sequentialCalls(request.options);
    case "pacedCalls":
      return await pacedCalls(request.options);
    case "pacedTimes":
      return await pacedTimes(request.options);
    case "openLogReaders":
      logReaders = await LogReaders.open(request.options);
      return null;
    case "closeLogReaders": {
      const bytes = logReaders?.bytes ?? 0;
      await logReaders?.[Symbol.asyncDispose]();
      logReaders = null;
      return bytes;
    }
    case "callTimes":
      return await callTimes(request.options);
    case "openAudience": {
      const startedAt = performance.now();
      audiences.set(request.options.name, await Audience.open(request.options));
      return performance.now() - startedAt;
    }
    case "openEventAudience":
      audiences.set(request.options.name, await EventAudience.open(request.options));
      return null;
    case "gets":
      return await RawGets.run(request.options);
    case "relay":
      return await relay(request.options);
    case "liveList":
      return await liveList(request.options);
    case "triggerAudience":
      return await audience(request.options.name).run(request.options);
    case "openReturning":
      returning.set(request.options.name, await Returning.open(request.options));
      return null;
    case "awaitReturn": {
      const sockets = returning.get(request.options.name);
      if (sockets === undefined) throw new Error(`There are no sockets "${request.options.name}"`);
      return await sockets.back();
    }
    case "roomMembers":
      return await roomMembers(request.options);
    case "streamReaders":
      return await streamReaders(request.options);
    case "closeAudience":
      await audience(request.options.name)[Symbol.asyncDispose]();
      audiences.delete(request.options.name);
      return null;
    default:
      return request satisfies never;
  }
}

const encoder = new TextEncoder();

async function answer(text: LoadAnswer): Promise<void> {
  const bytes = encoder.encode(`${JSON.stringify(text)}\n`);
  for (let sent = 0; sent < bytes.length;) sent += await Deno.stdout.write(bytes.subarray(sent));
}

for await (const line of lines(Deno.stdin.readable)) {
  try {
    await answer({ result: await run(JSON.parse(line)) });
  } catch (error) {
    await answer({ error: error instanceof Error ? error.message : String(error) });
  }
}
Deno.exit(0);
