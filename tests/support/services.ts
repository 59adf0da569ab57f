/**
 * Programs that some tests need and a machine may lack. `deno task test` installs those it can (`install_services.ts`); a
 * test that needs one of the others is skipped, with the reason in its name.
 */
import { spawnSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

export interface Service {
  readonly name: string;
  /** Program or folder of programs; `null` if the service is missing. */
  readonly find: () => string | null;
  readonly hint: string;
}

/** `find` returns the folder of `initdb` and `pg_ctl`. */
export const postgres: Service = {
  name: "PostgreSQL",
  find: findPostgres,
  hint: "apt-get install postgresql, or set SYNCLINE_TEST_POSTGRES to the folder of initdb",
};

/** `find` returns the browser's program. */
export const chromium: Service = {
  name: "Chromium",
  find: findChromium,
  hint: "apt-get install chromium-headless-shell, or set CHROMIUM to the path of a Chromium or Chrome",
};

/** `find` returns the folder of `swift-proxy-server`. */
export const swift: Service = {
  name: "OpenStack Swift (S3)",
  find: findSwift,
  hint: "apt-get install swift-proxy swift-account swift-container swift-object memcached",
};

/** `find` returns the program `npm`, if it can fetch packages. */
export const npm: Service = {
  name: "Node with an npm that can fetch packages",
  find: findNpm,
  hint: "see https://nodejs.org",
};

/** Name and `ignore` of a test or step that is skipped if a service is missing. */
export function needs(
  services: Service | readonly Service[],
  name: string,
): { readonly name: string; readonly ignore: boolean } {
  const missing = [services].flat().find((service) => service.find() === null);
  return missing === undefined
    ? { name, ignore: false }
    : { name: `${name} (skipped: ${missing.name} is not installed)`, ignore: true };
}

/** Location of the service. Throws an error with instructions if it is missing. */
export function pathOf(service: Service): string {
  const path = service.find();
  if (path === null) throw new Error(`${service.name} is not installed: ${service.hint}`);
  return path;
}

/** Usual locations of Chromium and Chrome. The headless shell starts in a third of the processor time. */
const CHROMIUM_PATHS = [
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/snap/bin/chromium",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

function findChromium(): string | null {
  const chosen = Deno.env.get("CHROMIUM");
  if (!chosen) return CHROMIUM_PATHS.find(isFile) ?? null;
  if (isFile(chosen)) return chosen;
  throw new Error(`Cannot find the browser that CHROMIUM names: "${chosen}" is not a file`);
}

const POSTGRES_VERSION_MIN = 13;

function findPostgres(): string | null {
  const folders = [Deno.env.get("SYNCLINE_TEST_POSTGRES") ?? "", ...debianPostgres(), ...searchPath()];
  return folders.find((folder) => folder !== "" && isFile(join(folder, "initdb"))) ?? null;
}

/** Debian's folders of PostgreSQL programs, newest version first. */
function debianPostgres(): string[] {
  try {
    return readdirSync("/usr/lib/postgresql").map(Number)
      .filter((version) => version >= POSTGRES_VERSION_MIN)
      .sort((a, b) => b - a)
      .map((version) => `/usr/lib/postgresql/${version}/bin`);
  } catch {
    return [];
  }
}

const SWIFT_PROGRAMS = [
  "swift-proxy-server",
  "swift-account-server",
  "swift-container-server",
  "swift-object-server",
  "memcached",
];

function findSwift(): string | null {
  return SWIFT_PROGRAMS.every((program) => onPath(program) !== null) ? onPath("swift-proxy-server") : null;
}

let npmFound: string | null | undefined;

function findNpm(): string | null {
  if (npmFound !== undefined) return npmFound;
  const [node, program] = [onPath("node"), onPath("npm")];
  const isUsable = node !== null && program !== null &&
    spawnSync(program, ["view", "react", "version"], { stdio: "ignore" }).status === 0;
  return npmFound = isUsable ? program : null;
}

export function onPath(program: string): string | null {
  return searchPath().map((folder) => join(folder, program)).find(isFile) ?? null;
}

function searchPath(): string[] {
  return (Deno.env.get("PATH") ?? "").split(":").filter((folder) => folder !== "");
}

/** Whether this is a file. A folder that the user may not read has none. */
export function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
