/**
 * The process started by `Commands`: runs command lines one after the other, like `cli.ts`. Requests are lines of JSON on
 * standard input. The process prints one line with the outcome of each.
 */
import process from "node:process";
import { adminCommands } from "../../mod/cli/admin_commands.ts";
import { backupCommand } from "../../mod/cli/backup_command.ts";
import { deployCommands } from "../../mod/cli/deploy/deploy_command.ts";
import { apiKeyCommands, deployKeyCommands } from "../../mod/cli/api_key_commands.ts";
import { envCommands } from "../../mod/cli/deploy/env_commands.ts";
import { migrateCommand } from "../../mod/cli/deploy/migrate_command.ts";
import { exportCommand } from "../../mod/cli/export_command.ts";
import { importCommand } from "../../mod/cli/import_command.ts";
import { exitOnBug, runProgram } from "../../mod/cli/program.ts";
import { replicaVerifyCommand } from "../../mod/cli/replica_command.ts";
import { restoreCommand } from "../../mod/cli/restore_command.ts";
import { openApiCommand } from "../../mod/cli/integrations/openapi_command.ts";
import { runCommand } from "../../mod/cli/run_command.ts";
import { userCommands } from "../../mod/cli/user_commands.ts";
import { encodeJsonLine, readJsonLines } from "../../mod/kit/processes/helper_process.ts";
import type { Ran, Request } from "./commands.ts";

const REQUEST_CHARS_MAX = 1_000_000;

const commands = [
  ...adminCommands,
  backupCommand,
  restoreCommand,
  replicaVerifyCommand,
  importCommand,
  openApiCommand,
  exportCommand,
  ...userCommands,
  runCommand,
  ...deployCommands,
  ...deployKeyCommands,
  ...apiKeyCommands,
  ...envCommands,
  migrateCommand,
];

exitOnBug();
const answer = Deno.stdout.writeSync.bind(Deno.stdout);
for await (const request of readJsonLines(Deno.stdin.readable, REQUEST_CHARS_MAX)) {
  const line = encodeJsonLine(await ran(JSON.parse(request)));
  for (let sent = 0; sent < line.length;) sent += answer(line.subarray(sent));
}

async function ran({ args, cwd, env, stdin }: Request): Promise<Ran> {
  const out = caught(Deno.stdout, process.stdout);
  const err = caught(Deno.stderr, process.stderr);
  const bytes = new TextEncoder().encode(stdin);
  Object.defineProperty(Deno.stdin, "readable", {
    value: new ReadableStream({
      start(controller) {
        if (bytes.length > 0) controller.enqueue(bytes);
        controller.close();
      },
    }),
    configurable: true,
  });
  Deno.chdir(cwd);
  for (const [name, value] of Object.entries(env)) Deno.env.set(name, value);
  try {
    return { code: await runProgram(commands, args), out: out(), err: err() };
  } finally {
    for (const name of Object.keys(env)) Deno.env.delete(name);
  }
}

/** Captures the output of a stream, under both of its names, instead of writing it. Returns a function that returns it. */
function caught(stream: typeof Deno.stdout, node: { write: unknown }): () => string {
  const decoder = new TextDecoder();
  let text = "";
  const writeSync = (bytes: Uint8Array) => {
    text += decoder.decode(bytes, { stream: true });
    return bytes.length;
  };
  Object.assign(stream, { writeSync, write: (bytes: Uint8Array) => Promise.resolve(writeSync(bytes)) });
  Object.assign(node, {
    write(written: string) {
      text += written;
      return true;
    },
  });
  return () => text;
}
