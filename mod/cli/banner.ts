/** The banner printed after the server has started: its addresses and what it serves. */
import { relative } from "node:path";
import type { ServeConfig } from "../config/config.ts";
import { VERSION } from "../config/version.ts";

export interface BannerFacts {
  readonly config: ServeConfig;
  /** Origin of the server. */
  readonly url: string;
  /** Origins at which other machines can reach the server. */
  readonly reachedAt?: readonly string[];
  /** Folder that paths are shown relative to. */
  readonly cwd: string;
  /** Link to create the first administrator; `null` if one exists. */
  readonly setupLink: string | null;
}

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

function functionsText({ deployed, functionsDir, example }: ServeConfig, cwd: string): string {
  if (deployed !== null) return `deployed version ${deployed}`;
  return shown(functionsDir, cwd) + (example ? "  (the bundled example)" : "");
}

/** Returns the path relative to `cwd` if it is inside it. */
function shown(path: string, cwd: string): string {
  const short = relative(cwd, path);
  return short === "" ? "." : short.startsWith("..") ? path : `./${short}`;
}
