/** The `package.json` of both packages. */
import project from "../../../deno.json" with { type: "json" };
import { PEERS } from "../../client/build/package_files.ts";
import { nativePackages } from "./native_packages.ts";

/** The oldest Node that the programs, and the builder of the templates, run on. */
export const nodeVersionMin = "20.19";

const common = {
  version: project.version,
  license: "MIT",
  type: "module",
  engines: { node: `>=${nodeVersionMin}` },
} as const;

/** The text of that of `syncline`. */
export async function synclineManifest(entries: readonly string[]): Promise<string> {
  const entry = (name: string) => ({ types: `./${name}.d.ts`, default: `./${name}.js` });
  return text({
    name: "syncline",
    description: "A self-hosted realtime backend: server, commands, client and React hooks",
    ...common,
    bin: { syncline: "bin/syncline.mjs" },
    sideEffects: false,
    exports: {
      ".": entry("client"),
      ...Object.fromEntries(entries.map((name) => [`./${name}`, entry(name)])),
      "./package.json": "./package.json",
    },
    peerDependencies: PEERS,
    // Functions are written with zod: npm installs it. Whoever has no React needs none.
    peerDependenciesMeta: { react: { optional: true } },
    // The runtime and the image library: npm installs those for this kind of machine.
    optionalDependencies: await nativePackages(),
  });
}

/** The text of that of `create-syncline`. */
export function createManifest(): string {
  return text({
    name: "create-syncline",
    description: "Makes a new app with Syncline: npm create syncline@latest my-app",
    ...common,
    bin: { "create-syncline": "bin/create-syncline.mjs" },
  });
}

function text(manifest: object): string {
  return `${JSON.stringify(manifest, null, 2)}\n`;
}
