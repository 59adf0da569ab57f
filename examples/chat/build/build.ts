/**
 * Builds the page of the chat from `examples/chat/app`. The result is committed, so that the first start needs no build. A
 * test checks that it is up to date.
 */
import { build, type BuildResult, stop } from "esbuild";
import { fileURLToPath } from "node:url";
import * as jsxRuntime from "react/jsx-runtime";
import * as react from "react";
import { packageAliases } from "./npm_packages.ts";

const chat = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Modules that the page's import map resolves. */
const RESOLVED_BY_PAGE = [
  "react",
  "react/jsx-runtime",
  "react-dom",
  "react-dom/client",
  "syncline/client",
  "syncline/react",
  "syncline/react/presence",
  "syncline/react/streams",
];

/** The built files, by their path below `examples/chat/public`. */
export async function buildChat(): Promise<Map<string, string>> {
  const shared = {
    bundle: true,
    format: "esm",
    target: "es2022",
    charset: "utf8",
    legalComments: "inline",
    write: false,
    logLevel: "error",
    absWorkingDir: chat(""),
  } as const;
  try {
    const app = await build({
      ...shared,
      entryPoints: [chat("app/main.tsx")],
      external: RESOLVED_BY_PAGE,
      jsx: "automatic",
    });
    const vendor = await build({
      ...shared,
      stdin: { contents: vendorModule(), resolveDir: chat("build") },
      define: { "process.env.NODE_ENV": '"production"' },
      minify: true,
      alias: packageAliases(),
    });
    return new Map([
      ["app.js", textOf(app)],
      ["vendor/react.js", textOf(vendor)],
    ]);
  } finally {
    await stop();
  }
}

/** React and its renderer for pages as one module: both use the same state, so they must not come twice. */
function vendorModule(): string {
  const exported = (module: object) =>
    Object.keys(module).filter((name) => /^[a-z]\w*$/i.test(name) && name !== "default");
  const names = exported(react);
  const jsxNames = exported(jsxRuntime).filter((name) => !names.includes(name));
  return [
    `export { ${names.join(", ")} } from "react";`,
    `export { ${jsxNames.join(", ")} } from "react/jsx-runtime";`,
    'export { flushSync } from "react-dom";',
    'export { createRoot, hydrateRoot } from "react-dom/client";',
    "",
  ].join("\n");
}

function textOf({ outputFiles }: BuildResult<{ write: false }>): string {
  const [file] = outputFiles;
  if (file === undefined || outputFiles.length !== 1) {
    throw new Error(`Built ${outputFiles.length} files, not one`);
  }
  return file.text;
}

if (import.meta.main) {
  for (const [path, text] of await buildChat()) {
    await Deno.mkdir(chat("public/vendor"), { recursive: true });
    await Deno.writeTextFile(chat(`public/${path}`), text);
  }
}
