/**
 * `deno task build:client`: writes the npm package `dist/client`, prints the sizes of its parts, and fails if they exceed their
 * limits.
 */
import * as esbuild from "esbuild";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { refuseOtherKind, runBuild } from "../../build/output_file.ts";
import { writeDeclarations } from "./declarations.ts";
import { sizeOf, writeModules } from "./javascript.ts";
import { packageJson } from "./package_files.ts";

const KIB = 1024;
/** Maximum sizes, minified and gzipped. */
const CORE_BYTES_MAX = 17 * KIB;
const REACT_BYTES_MAX = 5 * KIB;
const ACCOUNTS_BYTES_MAX = 1 * KIB;
const REACT_ACCOUNTS_BYTES_MAX = 1 * KIB;
const PRESENCE_BYTES_MAX = 1 * KIB;
const REACT_PRESENCE_BYTES_MAX = 1 * KIB;
const STREAMS_BYTES_MAX = 1 * KIB;
const REACT_STREAMS_BYTES_MAX = 1 * KIB;

const packageDir = new URL("../../../dist/client/", import.meta.url);

async function build(): Promise<boolean> {
  const dir = fileURLToPath(packageDir);
  await refuseOtherKind(resolve(dir), "folder");
  // Files of an earlier build must not be published.
  await Deno.remove(dir, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  await Deno.mkdir(dir, { recursive: true });
  await writeModules(dir);
  await writeDeclarations(dir);
  await Deno.writeTextFile(new URL("package.json", packageDir), packageJson());
  await Deno.copyFile(new URL("npm_readme.md", import.meta.url), new URL("README.md", packageDir));
  await Deno.copyFile(new URL("../../../LICENSE", import.meta.url), new URL("LICENSE", packageDir));
  const core = await sizeOf(dir, ["client"]);
  const accounts = await sizeOf(dir, ["client", "accounts"]) - core;
  const react = await sizeOf(dir, ["client", "react"]) - core;
  const reactAccounts = await sizeOf(dir, ["client", "accounts", "react", "react/accounts"]) - core - react -
    accounts;
  const presence = await sizeOf(dir, ["client", "presence"]) - core;
  const reactPresence = await sizeOf(dir, ["client", "presence", "react", "react/presence"]) - core - react -
    presence;
  const streams = await sizeOf(dir, ["client", "streams"]) - core;
  const reactStreams = await sizeOf(dir, ["client", "streams", "react", "react/streams"]) - core - react -
    streams;
  const fits = [
    report("syncline/client", core, CORE_BYTES_MAX),
    report("syncline/react, additional", react, REACT_BYTES_MAX),
    report("syncline/accounts, additional", accounts, ACCOUNTS_BYTES_MAX),
    report("syncline/react/accounts, additional", reactAccounts, REACT_ACCOUNTS_BYTES_MAX),
    report("syncline/presence, additional", presence, PRESENCE_BYTES_MAX),
    report("syncline/react/presence, additional", reactPresence, REACT_PRESENCE_BYTES_MAX),
    report("syncline/streams, additional", streams, STREAMS_BYTES_MAX),
    report("syncline/react/streams, additional", reactStreams, REACT_STREAMS_BYTES_MAX),
  ];
  return fits.every((fit) => fit);
}

function report(part: string, bytes: number, bytesMax: number): boolean {
  const fits = bytes <= bytesMax;
  // deno-lint-ignore no-console
  console.log(`${part}: ${bytes} bytes gzipped, ${fits ? "within" : "OVER"} the limit of ${bytesMax}`);
  return fits;
}

try {
  await runBuild(async () => {
    Deno.exitCode = await build() ? 0 : 1;
  });
} finally {
  await esbuild.stop();
}
