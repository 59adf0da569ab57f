/** The `package.json` of both packages. */
import project from "../../../deno.json" with { type: "json" };
import { exportOf, FRAMEWORKS, PEERS } from "../../client/build/package_files.ts";
import { projectDir } from "./copy_tree.ts";
import { nativePackages } from "./native_packages.ts";

/** The minimum Node version for the commands and the templates' build tool. */
export const nodeVersionMin = "20.19";

const common = {
  version: project.version,
  license: "MIT",
  type: "module",
  engines: { node: `>=${nodeVersionMin}` },
} as const;

/**
 * Returns `homepage`, `repository` and `bugs` for the repository that the package is built from.
 *
 * @param remote The address of its remote, or `null` for a copy without one: then only `homepage` is set.
 */
export function links(remote: string | null): Readonly<Record<string, unknown>> {
  const [, host, path] =
    /^(?:https:\/\/|ssh:\/\/git@|git@)([\w.-]+)[:/](.+?)(?:\.git)?\/?$/.exec(remote ?? "") ?? [];
  if (host === undefined) return { homepage: "https://www.npmjs.com/package/syncline" };
  const page = `https://${host}/${path}`;
  return {
    homepage: `${page}#readme`,
    repository: { type: "git", url: `git+${page}.git` },
    bugs: { url: `${page}/issues` },
  };
}

async function remoteAddress(): Promise<string | null> {
  const { success, stdout } = await new Deno.Command("git", {
    args: ["remote", "get-url", "origin"],
    cwd: projectDir,
    stderr: "null",
  }).output().catch(() => ({ success: false, stdout: new Uint8Array() }));
  return success ? new TextDecoder().decode(stdout).trim() : null;
}

/** Returns the `package.json` of `syncline`. */
export async function synclineManifest(entries: readonly string[]): Promise<string> {
  return text({
    name: "syncline",
    description:
      "A self-hosted realtime backend: server, commands, client and bindings for React, Vue, Svelte and Solid",
    ...common,
    ...links(await remoteAddress()),
    bin: { syncline: "bin/syncline.mjs" },
    sideEffects: false,
    exports: {
      ".": exportOf("client"),
      ...Object.fromEntries(entries.map((name) => [`./${name}`, exportOf(name)])),
      "./package.json": "./package.json",
    },
    peerDependencies: PEERS,
    // Apps use zod to declare functions. Frameworks are optional.
    peerDependenciesMeta: Object.fromEntries(FRAMEWORKS.map((name) => [name, { optional: true }])),
    // The Deno runtime and the image library; npm installs the packages for the current platform.
    optionalDependencies: await nativePackages(),
  });
}

/** Returns the `package.json` of `create-syncline`. */
export async function createManifest(): Promise<string> {
  return text({
    name: "create-syncline",
    description: "Creates a new Syncline app: npm create syncline@latest my-app",
    ...common,
    ...links(await remoteAddress()),
    bin: { "create-syncline": "bin/create-syncline.mjs" },
  });
}

function text(manifest: object): string {
  return `${JSON.stringify(manifest, null, 2)}\n`;
}
