/**
 * Builds the dashboard from `dashboard/app`. The result stands in the repository, so that nothing has to be built before
 * the first start; a test checks that it is up to date.
 */
import { build, type BuildResult, type Metafile, type Plugin, stop } from "esbuild";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { viewNames } from "../app/shell/view_names.ts";
import { ICON_PATHS, type IconName } from "../app/ui/icon_paths.ts";
import project from "../../deno.json" with { type: "json" };

const dashboard = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Where in the page the links to what is fetched at once stand. */
const PRELOADS = "<!-- What is fetched at once -->";

/** And where the frame stands until the scripts draw it. */
const FRAME = "<!-- The frame -->";

/** Packages of the pages; what they need comes with them. */
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
  "get-nonce",
  "radix-ui",
  "react",
  "react-dom",
] as const;

/** The built files, by their path below `dashboard/public/built`. Chunks have the hash of their contents in their names. */
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
      // Licences stand beside the code they are of.
      legalComments: "eof",
      chunkNames: "chunks/[name]-[hash]",
      write: false,
      logLevel: "error",
      metafile: true,
      define: { "process.env.NODE_ENV": '"production"' },
      plugins: [firstViewTogether()],
      nodePaths: [`${packages}node_modules`],
      alias: {
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

/** Has everything that is loaded later import what the first view is made of, which comes as one file then. */
function firstViewTogether(): Plugin {
  return {
    name: "first view together",
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

/** Where the packages lie while the dashboard is built. Always the same place: the names of chunks depend on it. */
const packages = dashboard(".packages/");

/** Lays the packages out as bundlers look for them, in the versions of the lock file. */
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
    throw new Error(`The packages cannot be laid out: ${new TextDecoder().decode(stderr).trim()}`);
  }
}

type Built = BuildResult<{ write: false; metafile: true }>;

async function files({ outputFiles, metafile }: Built): Promise<Map<string, string>> {
  const texts = new Map(outputFiles.map(({ path, text }) => [path.replace(/^\/built\//, ""), text]));
  const first = firstView(metafile);
  // Browsers compile all of it while it arrives, rather than each function when it is first called.
  for (const path of first) texts.set(path, `//# allFunctionsCalledOnLoad\n${texts.get(path)}`);
  texts.set("index.html", await page(first));
  return new Map([...texts].toSorted(([a], [b]) => a < b ? -1 : 1));
}

/** The scripts that the first view needs: the page's own, the overview, and what these import at once. */
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

/** The page, which tells the browser at once what it will ask for. */
async function page(first: ReadonlySet<string>): Promise<string> {
  const links = [...first].filter((path) => path !== "app.js").toSorted()
    .map((path) => `<link rel="modulepreload" href="./built/${path}">`);
  const text = await Deno.readTextFile(dashboard("app/index.html"));
  return text.replace(PRELOADS, links.join("\n    ")).replace(FRAME, frame());
}

/** The frame as `shell.tsx` draws it: seen at once, and gone when that takes its place. */
function frame(): string {
  const icon = (name: IconName) =>
    `<svg width="16" height="16" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.4"` +
    ` stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="${
      ICON_PATHS[name]
    }"/></svg>`;
  const entries = viewNames.map(({ name, title, icon: drawn }) =>
    `<li><a href="#/${name}">${icon(drawn)} ${title}</a></li>`
  );
  return `<div class="shell frame"><aside class="side"><a class="brand" href="#/overview">` +
    `<img src="./icon.svg" alt="" width="20" height="20"> Syncline</a>` +
    `<span class="button nav-button">${icon("search")} Go to… <span class="keys">⌘K</span></span>` +
    `<nav><ul class="nav">${entries.join("")}</ul></nav></aside>` +
    `<div class="stage"><div class="view"><div class="view-head"></div></div></div></div>`;
}

if (import.meta.main) {
  const built = await buildDashboard();
  await Deno.remove(dashboard("public/built"), { recursive: true }).catch(() => {});
  await Deno.mkdir(dashboard("public/built/chunks"), { recursive: true });
  for (const [path, text] of built) await Deno.writeTextFile(dashboard(`public/built/${path}`), text);
}
