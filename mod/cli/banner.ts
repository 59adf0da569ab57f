/** What a person reads after the server has started: where to look, and what is being served. */
import { relative } from "node:path";
import type { ServeConfig } from "../config/config.ts";
import { VERSION } from "../config/version.ts";

export interface BannerFacts {
  readonly config: ServeConfig;
  /** Address without a slash at its end. */
  readonly url: string;
  /** Folder that paths are shown relative to. */
  readonly cwd: string;
  /** Where the first administrator is created; `null` when there is one. */
  readonly setupLink: string | null;
}

export function banner({ config, url, cwd, setupLink }: BannerFacts): string {
  const everywhere = config.host === "0.0.0.0" || config.host === "::";
  const rows: [string, string][] = [
    [
      config.staticDir === null && config.devFrontendUrl === null ? "server" : "app",
      `${url}/${everywhere ? "  (and every address of this machine)" : ""}`,
    ],
    ["dashboard", `${url}/_/`],
    ["functions", functionsText(config, cwd)],
    ["data", shown(config.dataDir, cwd)],
  ];
  if (config.dev) rows.push(["dev", "functions are reloaded when they are edited"]);
  if (setupLink !== null) rows.push(["setup", `${setupLink}  (creates the first administrator, once)`]);
  const hint = config.example
    ? "Open the app in two browser windows: what is typed in one appears in the other.\n"
    : "";
  const table = rows.map(([name, value]) => `  ${name.padEnd(10)} ${value}\n`).join("");
  return `\nSyncline ${VERSION}\n\n${table}\n${hint}Press Ctrl+C to stop.\n\n`;
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
