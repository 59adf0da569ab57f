/** The command `serve`: runs a server until a signal or a restart by an administrator. */
import { relative } from "node:path";
import type { ServeConfig } from "../config/config.ts";
import { environmentSuggestions } from "../config/env_file.ts";
import { type ExplicitValues, optionVariables, type ServeOptions } from "../config/options.ts";
import { resolveConfig } from "../config/resolve_config.ts";
import { AppError, StartError } from "../config/start_error.ts";
import { VERSION } from "../config/version.ts";
import { helpFields } from "../explained.ts";
import { updateGeneratedModule } from "../functions/generated_module.ts";
import { isDiskFull } from "../kit/durable_files.ts";
import { type Log, stderrLog } from "../kit/log.ts";
import { collectWhenIdle } from "../kit/processes/idle_collection.ts";
import { startBackend } from "../server/backend.ts";
import { runDevMode } from "../server/dev/dev_mode.ts";
import { FolderEdits } from "../server/dev/folder_edits.ts";
import { checkTypes } from "../server/dev/type_check.ts";
import { type NativeSockets, openNativeSockets } from "../server/net/native_sockets.ts";
import { narrowPermissions, networkInterfaces } from "../server/permissions/narrow.ts";
import { Server } from "../server/server.ts";
import { StopSignals } from "../server/signals.ts";
import { type CommandSpec, exitCodes } from "./command_line.ts";
import { installedPage } from "../kit/command_log.ts";

/** Variables that are not options: set by the tasks of this repository and by the npm package. */
const FURTHER = ["SYNCLINE_PROGRAM"];

const EXPORTED = /^(?:export|declare -x) (SYNCLINE_\w+)/gim;

/** Warns of misspelled `SYNCLINE_*` variables. A shell lists the names: the permissions allow only known ones. */
export async function environmentHints(): Promise<readonly string[]> {
  if (Deno.build.os === "windows" || Deno.env.get("SYNCLINE_PROGRAM") !== undefined) return [];
  try {
    const { stdout } = await new Deno.Command("sh", {
      args: ["-c", "export -p"],
      stdin: "null",
      stdout: "piped",
      stderr: "null",
    }).output();
    const names = [...new TextDecoder().decode(stdout).matchAll(EXPORTED)].map(([, name = ""]) => name);
    return environmentSuggestions(names, [...optionVariables(), ...FURTHER]);
  } catch (error) {
    // The server does not need a shell.
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotCapable) return [];
    throw error;
  }
}

export interface BannerFacts {
  readonly config: ServeConfig;
  readonly url: string;
  readonly reachedAt?: readonly string[];
  /** Folder that paths are shown relative to. */
  readonly cwd: string;
  /** Link to create the first administrator; `null` if one exists. */
  readonly setupLink: string | null;
}

/** The banner printed after the server has started: its addresses and what it serves. */
export function banner({ config, url, cwd, setupLink, reachedAt = [] }: BannerFacts): string {
  const everywhere = config.host === "0.0.0.0" || config.host === "::";
  const rows: [string, string][] = [
    [
      config.staticDir === null && config.devFrontendUrl === null ? "server" : "app",
      `${url}/${everywhere ? "  (and all addresses of this machine)" : ""}`,
    ],
    ...reachedAt.map((address): [string, string] => ["network", `${address}/`]),
    ["dashboard", `${url}/_/`],
    ["functions", functionsText(config, cwd)],
    ["data", shown(config.dataDir, cwd)],
  ];
  if (config.dev) {
    rows.push(["dev", "functions reload when edited"], ["docs", `${url}/_/docs/`]);
  }
  if (setupLink !== null) rows.push(["setup", `${setupLink}  (creates the first administrator; valid once)`]);
  const hint = config.example
    ? "Open the app in two browser windows: what you type in one appears in the other.\n"
    : "";
  const table = rows.map(([name, value]) => `  ${name.padEnd(10)} ${value}\n`).join("");
  return `\nSyncline ${VERSION}\n\n${table}\n${hint}Press Ctrl+C to stop.\n\n`;
}

/** Maximum number of network addresses shown; a container host has many. */
const REACHED_MAX = 4;

/** Returns the origins at which other machines in the network, such as a phone, can reach the server. */
export function reachedAt(
  { host, url, interfaces }: {
    readonly host: string;
    readonly url: string;
    readonly interfaces: readonly Pick<Deno.NetworkInterfaceInfo, "family" | "address" | "name">[];
  },
): readonly string[] {
  if (host !== "0.0.0.0" && host !== "::") return [];
  const { port } = new URL(url);
  return interfaces
    .filter(({ family, address }) => family === "IPv4" && !/^(?:127|169\.254)\./.test(address))
    .filter(({ name }) => !/^(?:docker|br-|veth|virbr)/.test(name))
    .slice(0, REACHED_MAX)
    .map(({ address }) => `http://${address}${port === "" ? "" : `:${port}`}`);
}

function functionsText({ deployed, functionsDir, example, empty }: ServeConfig, cwd: string): string {
  if (empty) return "none yet  (deploy an app to this server)";
  if (deployed !== null) return `version ${deployed}`;
  return shown(functionsDir, cwd) + (example ? "  (the bundled example)" : "");
}

/** Returns the path relative to `cwd` if it is inside it. */
function shown(path: string, cwd: string): string {
  const short = relative(cwd, path);
  return short === "" ? "." : short.startsWith("..") ? path : `./${short}`;
}

export const serveCommand: CommandSpec = {
  name: "serve",
  description: "Serve an app: its functions, data and frontend",
  run: (options, _argument, given) => serve(options, given),
};

async function serve(options: ServeOptions, given: ExplicitValues): Promise<number> {
  using signals = new StopSignals();
  // Cannot be read once the permissions are narrowed.
  const cwd = Deno.cwd();
  let ownUrl: string | undefined;
  const log = stderrLog({
    debug: options.dev,
    docsLink(path) {
      // No server answers at the path yet.
      if (ownUrl === undefined) return installedPage(path, cwd);
      // Terminals make URLs clickable. Logs of a service are read on other machines.
      return options.dev ? ownUrl + path : path;
    },
  });
  const restart = Promise.withResolvers<"restart">();
  const onRestart = () => restart.resolve("restart");
  try {
    const config = await resolveConfig(options, given);
    const hints = environmentHints();
    const native = await openNativeSockets();
    for (const hint of [...config.warnings ?? [], ...await hints]) log("warn", hint);
    await narrowPermissions(config, log);
    const { dev, functionsDir, typeCheck } = config;
    // Before the code is read, so that no edit is missed.
    using edits = dev ? watchEdits(functionsDir) : null;
    const starting = startServer(config, { log, onRestart, native, edits });
    const started = await Promise.race([starting, signals.first]);
    // Nothing is served yet, and the isolates exit with this process.
    if (typeof started === "string") return exitCodes.ok;
    await using server = started;
    collectWhenIdle({ trim: native?.trimMemory });
    const { url, setupLink } = server;
    ownUrl = url;
    const others = reachedAt({ host: config.host, url, interfaces: await networkInterfaces() });
    const text = banner({ config, url, cwd, setupLink, reachedAt: others });
    await Deno.stdout.write(new TextEncoder().encode(text));
    const gaveWay = server.handedOver.then(() => "gave way" as const);
    const portEnded = server.portEnded.then((error) => {
      log("error", "The server cannot continue and stops. Restart it", { error });
      return "port ended" as const;
    });
    const stop = Promise.race([signals.first, restart.promise, gaveWay, portEnded]);
    await serveUntil(stop, { server, log, functionsDir, edits, typeCheck });
    switch (await stop) {
      case "restart":
        return config.restartExitCode ?? exitCodes.ok;
      case "port ended":
        return exitCodes.failed;
      default:
        return exitCodes.ok;
    }
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    log("error", error.message, helpFields(error));
    return exitCodes.failed;
  }
}

function startServer(
  config: ServeConfig,
  { log, onRestart, native, edits }: {
    readonly log: Log;
    readonly onRestart: () => void;
    readonly native: NativeSockets | null;
    readonly edits: FolderEdits | null;
  },
): Promise<Server> {
  const start = () =>
    Server.start({ config, log, startBackend, onRestart, native }).catch((error) => {
      if (!isDiskFull(error)) throw error;
      throw new StartError(
        `Cannot start: the disk of the data folder "${config.dataDir}" is full. Free some space, then start again`,
        { code: "data_folder", cause: error },
      );
    });
  // Where another server runs, one that is broken leaves it alone.
  return edits === null || config.takeover ? start() : startOnceLoadable(start, { config, log, edits });
}

/** Starts to watch the functions. Throws a `StartError` if the system does not allow it. */
function watchEdits(functionsDir: string): FolderEdits {
  try {
    return new FolderEdits(functionsDir);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : cause;
    throw new StartError(`Cannot watch "${functionsDir}" for edits: ${reason}. Start without --dev`, {
      cause,
    });
  }
}

/** Starts the server. An app that fails to load is retried after each edit. */
async function startOnceLoadable(
  start: () => Promise<Server>,
  { config, log, edits }: { readonly config: ServeConfig; readonly log: Log; readonly edits: FolderEdits },
): Promise<Server> {
  for (;;) {
    try {
      await updateGeneratedModule(config.functionsDir, log);
      return await start();
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      log("error", `${error.message}\nWaiting for the next edit.`);
      if (await edits.next() === null) throw error;
    }
  }
}

interface Running {
  readonly server: Server;
  readonly log: Log;
  readonly functionsDir: string;
  /** Edits to load; `null` without `--dev`. */
  readonly edits: FolderEdits | null;
  readonly typeCheck: boolean;
}

async function serveUntil(
  stop: Promise<string>,
  { server, log, functionsDir, edits, typeCheck }: Running,
): Promise<void> {
  const devMode = edits === null ? null : runDevMode({
    functionsDir,
    edits,
    log,
    reload: () => server.reload(),
    standBy: () => server.standBy(),
    checkTypes: typeCheck ? checkTypes : () => Promise.resolve(null),
  }).catch((error) => log("error", "Edits are no longer served. Restart the server", { error }));
  const gaveWay = await stop === "gave way";
  log(
    "info",
    gaveWay
      ? "Another process has taken over: closing sockets and finishing running calls"
      : "Stopping: closing sockets and finishing running calls. A second signal stops immediately",
  );
  edits?.[Symbol.dispose]();
  await devMode;
}
