/** The command `syncline` of the npm package. Development commands run in Node, all others in the bundled Deno runtime. */
import process from "node:process";
import { demo } from "./demo.ts";
import { dev } from "./dev.ts";
import { init } from "./init.ts";
import { PlainError, runProgram } from "./plain_error.ts";
import { refusedHere } from "./platforms.ts";
import { findProject } from "./project.ts";
import { ended, openRuntime, startDeno } from "./runtime.ts";
import { warnMisspelledVariables } from "./variables.ts";

const HELP = `Usage: syncline <command> [options]

To make an app:
  npm create syncline@latest my-app   a new app in a folder of its own
  syncline init                       functions for the project that is here already
  syncline dev [options]              serve the app while it is edited; takes the options of serve
  syncline demo                       the chat example, on data that is forgotten at the end
  syncline conformance -- <driver>    test a client of the sync protocol in another language

To run it; commands look for the project from here upward, and paths count from its folder:
`;

/** Permission sets of commands that do not use the server's. */
const SETS: Readonly<Record<string, string>> = {
  import: "import",
  backup: "backup",
  doctor: "doctor",
  logs: "export",
  export: "export",
  restore: "restoreRemote",
  replica: "restoreRemote",
  deploy: "deploy",
  rollback: "deploy",
};

async function run(name: string, args: readonly string[]): Promise<number> {
  const refusal = refusedHere(name, process.platform);
  if (refusal !== null) throw new PlainError(refusal);
  switch (name) {
    case "dev":
      return await dev(args);
    case "init":
      return await init(args);
    case "test-servers":
      return await testServers();
    case "demo":
      return await demo(args);
    case "conformance":
      return await conformance(args);
    case "":
    case "help":
    case "-h":
    case "--help":
      process.stdout.write(HELP);
      return await command("--help", []);
    default:
      return await command(name, args);
  }
}

async function command(name: string, args: readonly string[]): Promise<number> {
  const cwd = findProject(process.cwd()) ?? process.cwd();
  const set = SETS[name] ?? "serve";
  return await ended(startDeno(openRuntime(), { set, args: [name, ...args], cwd, stdio: "inherit" }));
}

/** The process that `syncline/test` communicates with. */
async function testServers(): Promise<number> {
  const entry = "mod/testing/remote/process.ts";
  return await ended(
    startDeno(openRuntime(), { set: "appTests", entry, args: [], cwd: process.cwd(), stdio: "inherit" }),
  );
}

/** A bundle of its own: other commands do not need the WebSocket server. */
async function conformance(args: readonly string[]): Promise<number> {
  const kit = await import("../conformance/run.ts");
  return await kit.conformance(args, new URL("../conformance/", import.meta.url));
}

const [name = "", ...args] = process.argv.slice(2);
warnMisspelledVariables();
await runProgram(() => run(name, args));
