/** The command `mcp`: an MCP server over standard input and output, whose messages the running server answers. */
import type { OptionValues } from "../../config/options.ts";
import { StartError } from "../../config/start_error.ts";
import { helpFields } from "../../explained.ts";
import { mcpLimits } from "../../mcp/limits.ts";
import { type CommandSpec, exitCodes } from "../command_line.ts";
import { commandLog } from "../../kit/command_log.ts";
import { callRunningServer } from "../running_server.ts";

export const mcpCommand: CommandSpec = {
  name: "mcp",
  description: "Let an agent inspect a running server by MCP over standard input and output",
  run,
};

type McpOptions = Pick<OptionValues, "data" | "url" | "adminToken" | "allowWrites">;

/** Sends a message to the server. Returns its answer, or an empty string for a notification. */
type Send = (message: unknown) => Promise<string>;

async function run(options: McpOptions): Promise<number> {
  let send: Send;
  try {
    send = senderOf(options);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    commandLog()("error", error.message, helpFields(error));
    return exitCodes.failed;
  }
  await relay(Deno.stdin.readable, send, async (line) => {
    const bytes = new TextEncoder().encode(`${line}\n`);
    for (let sent = 0; sent < bytes.length;) sent += await Deno.stdout.write(bytes.subarray(sent));
  });
  return exitCodes.ok;
}

function senderOf({ data, url, adminToken, allowWrites: write }: McpOptions): Send {
  if (url === null) {
    return async (message) => {
      const answer = await callRunningServer(data, "_admin/mcp:handle", { message, write });
      return (answer as { readonly text: string }).text;
    };
  }
  if (adminToken === null) {
    throw new StartError("Set SYNCLINE_ADMIN_TOKEN to the access token of an administrator");
  }
  return async (message) => {
    const response = await fetch(`${url}/api/mcp?write=${write}`, {
      method: "POST",
      headers: {
        "Accept": "application/json, text/event-stream",
        "Authorization": `Bearer ${adminToken}`,
        "Content-Type": "application/json",
      },
      body: JSON.stringify(message),
      redirect: "error",
    });
    const text = await response.text();
    if (response.ok || text.includes('"jsonrpc"')) return text;
    throw new StartError(
      response.status === 401 ? EXPIRED : `${url} responded with ${response.status}: ${text}`,
    );
  };
}

const EXPIRED = "The access token is invalid or has expired: sign in again and restart the command";

/** Relays lines of JSON until the input ends. A message that cannot be delivered is answered with an error. */
export async function relay(
  input: ReadableStream<Uint8Array>,
  send: Send,
  write: (line: string) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>();
  let written = Promise.resolve();
  const answer = async (line: string) => {
    const text = await answerTo(line, send);
    if (text === "") return;
    // One after the other: a line must not begin within another one.
    await (written = written.then(() => write(text)));
  };
  for await (const line of lines(input)) {
    if (line.trim() === "") continue;
    while (running.size >= mcpLimits.messagesMax) await Promise.race(running);
    const answered: Promise<void> = answer(line).finally(() => running.delete(answered));
    running.add(answered);
  }
  await Promise.all(running);
}

async function answerTo(line: string, send: Send): Promise<string> {
  let message: unknown;
  try {
    message = JSON.parse(line);
  } catch {
    return failure(null, -32700, "The message is not JSON");
  }
  try {
    return await send(message);
  } catch (error) {
    const id = (message as { readonly id?: unknown } | null)?.id;
    // Notifications have no answers.
    if (id === undefined) return "";
    return failure(id, -32603, error instanceof Error ? error.message : String(error));
  }
}

function failure(id: unknown, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } });
}

async function* lines(input: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of input) {
    text += decoder.decode(chunk, { stream: true });
    const complete = text.split("\n");
    text = complete.pop() ?? "";
    yield* complete;
    if (text.length > mcpLimits.bodyBytesMax) throw new RangeError("A message is too long");
  }
  yield text;
}
