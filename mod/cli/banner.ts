/** What a person reads after the server has started: where to look, and what is being served. */
import { relative } from "node:path";
import type { ServeConfig } from "../config/config.ts";
import { VERSION } from "../config/version.ts";

export interface BannerFacts {
  readonly config: ServeConfig;
  /** Address without a slash at its end. */
  readonly url: string;
  /** Addresses without a slash at their ends under which other machines find it; empty where none do. */
  readonly reachedAt?: readonly string[];
  /** Folder that paths are shown relative to. */
  readonly cwd: string;
  /** Where the first administrator is created; `null` when there is one. */
  readonly setupLink: string | null;
}

export function banner({ config, url, cwd, setupLink, reachedAt = [] }: BannerFacts): string {
  const everywhere = config.host === "0.0.0.0" || config.host === "::";
  const rows: [string, string][] = [
    [
      config.staticDir === null && config.devFrontendUrl === null ? "server" : "app",
      `${url}/${everywhere ? "  (and every address of this machine)" : ""}`,
    ],
    ...reachedAt.map((address): [string, string] => ["network", `${address}/`]),
    ["dashboard", `${url}/_/`],
    ["functions", functionsText(config, cwd)],
    ["data", shown(config.dataDir, cwd)],
  ];
  if (config.dev) {
    rows.push(["dev", "functions are reloaded when they are edited"], ["docs", `${url}/_/docs/`]);
  }
  if (setupLink !== null) rows.push(["setup", `${setupLink}  (creates the first administrator, once)`]);
  const hint = config.example
    ? "Open the app in two browser windows: what is typed in one appears in the other.\n"
    : "";
  const table = rows.map(([name, value]) => `  ${name.padEnd(10)} ${value}\n`).join("");
  return `\nSyncline ${VERSION}\n\n${table}\n${hint}Press Ctrl+C to stop.\n\n`;
}

/** How many addresses are named: a machine of containers has one for each. */
const REACHED_MAX = 4;

/** Where other machines find a server that listens on this host: a phone in the same network, for example. */
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

function functionsText({ deployed, functionsDir, example }: ServeConfig, cwd: string): string {
  if (deployed !== null) return `deployed version ${deployed}`;
  return shown(functionsDir, cwd) + (example ? "  (the bundled example)" : "");
}

/** A path as short as it stays clear. */
function shown(path: string, cwd: string): string {
  const short = relative(cwd, path);
  return short === "" ? "." : short.startsWith("..") ? path : `./${short}`;
}
