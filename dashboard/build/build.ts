/**
 * Builds the dashboard from `dashboard/app`. The output is committed, so a server starts without a build step; a test checks
 * that it is current.
 */
import { build, type BuildResult, type Metafile, type Plugin, stop } from "esbuild";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { viewGroups } from "../app/shell/view_names.ts";
import { ICON_PATHS, type IconName } from "../app/ui/icon_paths.ts";
import project from "../../deno.json" with { type: "json" };

const dashboard = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Placeholder of the preload links in index.html. */
const PRELOADS = "<!-- Preloads -->";

/** Placeholder of the static frame in index.html. */
const FRAME = "<!-- Frame -->";

/** Packages that the dashboard imports; their dependencies are installed with them. */
const PACKAGES = [
  "@codemirror/autocomplete",
  "@codemirror/commands",
  "@codemirror/lang-json",
  "@codemirror/language",
  "@codemirror/lint",
  "@codemirror/state",
  "@codemirror/view",
  "@lezer/highlight",
  "cmdk",
  "diff",
  "get-nonce",
  "radix-ui",
  "react",
  "react-dom",
] as const;

/** Returns the built files by path below `dashboard/public/built`. Chunk names contain a content hash. */
export async function buildDashboard(): Promise<Map<string, string>> {
  try {
    await install();
    const result = await build({
      absWorkingDir: dashboard("app"),
      entryPoints: { app: "main.tsx" },
      outdir: "/built",
      bundle: true,
      splitting: true,
      format: "esm",
      target: "es2022",
      jsx: "automatic",
      minify: true,
      charset: "utf8",
      // Licence comments of the bundled packages.
      legalComments: "eof",
      chunkNames: "chunks/[name]-[hash]",
      write: false,
      logLevel: "error",
      // Served beside the built files.
      external: ["*.woff2"],
      metafile: true,
      define: { "process.env.NODE_ENV": '"production"' },
      plugins: [firstViewTogether()],
      nodePaths: [`${packages}node_modules`],
      alias: {
        "syncline/accounts": fileURLToPath(import.meta.resolve("syncline/accounts")),
        "syncline/client": fileURLToPath(import.meta.resolve("syncline/client")),
        "syncline/react": fileURLToPath(import.meta.resolve("syncline/react")),
      },
    });
    return await files(result);
  } finally {
    await stop();
    await Deno.remove(packages, { recursive: true }).catch(() => {});
  }
}

/** Makes every lazily loaded module import `first_view.ts`, so that the shared modules form one chunk. */
function firstViewTogether(): Plugin {
  return {
    name: "first-view-chunk",
    setup({ onResolve, onLoad }) {
      const later = new Set<string>();
      onResolve({ filter: /^\.{1,2}\// }, ({ kind, path, resolveDir }) => {
        if (kind === "dynamic-import") later.add(resolve(resolveDir, path));
        return null;
      });
      onLoad({ filter: /\.tsx?$/ }, async ({ path }) => {
        if (!later.has(path)) return null;
        const contents = `import "${dashboard("app/first_view.ts")}";\n${await Deno.readTextFile(path)}`;
        return { contents, loader: path.endsWith("x") ? "tsx" : "ts" };
      });
    },
  };
}

/** Temporary package folder. The path is fixed because chunk hashes depend on it. */
const packages = dashboard(".packages/");

/** Installs the packages into a `node_modules` folder, in the versions of the lock file. */
async function install(): Promise<void> {
  await Deno.mkdir(packages, { recursive: true });
  const imports = Object.fromEntries(PACKAGES.map((name) => [name, project.imports[name]]));
  await Deno.writeTextFile(`${packages}deno.json`, JSON.stringify({ imports, nodeModulesDir: "auto" }));
  await Deno.copyFile(dashboard("../deno.lock"), `${packages}deno.lock`);
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["install", "--quiet"],
    cwd: packages,
    stdout: "null",
  }).output();
  if (!success) {
    throw new Error(`Cannot install packages: ${new TextDecoder().decode(stderr).trim()}`);
  }
}

type Built = BuildResult<{ write: false; metafile: true }>;

async function files({ outputFiles, metafile }: Built): Promise<Map<string, string>> {
  const texts = new Map(outputFiles.map(({ path, text }) => [path.replace(/^\/built\//, ""), text]));
  const first = firstView(metafile);
  // Makes browsers compile the script while it streams in, instead of lazily per function.
  for (const path of first) texts.set(path, `//# allFunctionsCalledOnLoad\n${texts.get(path)}`);
  texts.set("index.html", await page(first));
  return new Map([...texts].toSorted(([a], [b]) => a < b ? -1 : 1));
}

/** Scripts needed by the first view: the entry point, the overview and their static imports. */
function firstView({ outputs }: Metafile): ReadonlySet<string> {
  const paths = Object.keys(outputs);
  const overview = paths.find((path) => /\/overview-[^/]*\.js$/.test(path));
  const found = new Set([paths.find((path) => path.endsWith("/built/app.js")), overview]);
  for (const path of found) {
    for (const part of outputs[path ?? ""]?.imports ?? []) {
      if (part.kind === "import-statement") found.add(part.path);
    }
  }
  return new Set([...found].map((path = "") => path.replace(/^.*\/built\//, "")));
}

/** Returns index.html with preload links and the static frame. */
async function page(first: ReadonlySet<string>): Promise<string> {
  const links = [...first].filter((path) => path !== "app.js").toSorted()
    .map((path) => `<link rel="modulepreload" href="./built/${path}">`);
  const text = await Deno.readTextFile(dashboard("app/index.html"));
  return text.replace(PRELOADS, links.join("\n    ")).replace(FRAME, frame());
}

/** The static frame, identical to what `shell.tsx` renders, which replaces it. */
function frame(): string {
  const icon = (name: IconName) =>
    `<svg width="16" height="16" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.4"` +
    ` stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="${
      ICON_PATHS[name]
    }"/></svg>`;
  const groups = viewGroups.map(({ title, views }) => {
    const entries = views.map((view) =>
      `<li><a href="#/${view.name}">${icon(view.icon)} ${view.title}</a></li>`
    );
    return `${title === null ? "" : `<p class="nav-title">${title}</p>`}<ul class="nav">${
      entries.join("")
    }</ul>`;
  });
  return `<div class="shell frame"><aside class="side"><a class="brand" href="#/overview">` +
    `<img src="./icon.svg" alt="" width="20" height="20"> Syncline</a>` +
    `<span class="button nav-button">${icon("search")} Go to…</span>` +
    `<nav>${groups.join("")}</nav></aside>` +
    `<div class="stage"><div class="view"><div class="view-head"></div></div></div></div>`;
}

if (import.meta.main) {
  const built = await buildDashboard();
  await Deno.remove(dashboard("public/built"), { recursive: true }).catch(() => {});
  await Deno.mkdir(dashboard("public/built/chunks"), { recursive: true });
  for (const [path, text] of built) await Deno.writeTextFile(dashboard(`public/built/${path}`), text);
}
