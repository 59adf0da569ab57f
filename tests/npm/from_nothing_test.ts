/**
 * From nothing to an app, with Node alone: the packages are published to a registry of the test's own, installed from it in
 * a folder outside this repository, and used as a newcomer uses them.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import project from "../../deno.json" with { type: "json" };
import { BINDINGS } from "../../mod/client/build/package_files.ts";
import { projectDir } from "../support/processes/child.ts";
import { launchChromium } from "../support/chromium.ts";
import { chromium, needs, npm } from "../support/services.ts";
import { until } from "../support/waiting.ts";
import {
  changesSchema,
  type Client,
  deploys,
  installedClient,
  Production,
  refusesDeploys,
} from "./support/deploying.ts";
import { NodeMachine, type Running } from "./support/node_machine.ts";
import {
  checkClientTypes,
  checkEditor,
  checkPageCode,
  checkPlainNode,
  checkServerComponents,
  checkSharedFiles,
  checkSizes,
  checkTemplateManifest,
  checkTypes,
  typeCheckOf,
  writeTypeTests,
} from "./support/package_checks.ts";
import { PACKAGED_FUNCTIONS, REFERENCES_TEST } from "./support/package_sources.ts";
import { Registry } from "./support/registry.ts";

const CREATE = join(projectDir, "dist/npm/create-syncline/bin/create-syncline.mjs");

/** Downloads of a developer. */
const BYTES_MAX = 100_000_000;
/** An address that answers no one: every request through it fails. */
const NO_NETWORK = {
  HTTP_PROXY: "http://127.0.0.1:9",
  HTTPS_PROXY: "http://127.0.0.1:9",
  http_proxy: "http://127.0.0.1:9",
  https_proxy: "http://127.0.0.1:9",
  npm_config_registry: "http://127.0.0.1:9/",
  npm_config_fetch_retries: "0",
};

Deno.test(needs(npm, "from nothing to an app with Node alone"), async (test) => {
  await using registry = await Registry.start();
  await using machine = await NodeMachine.create(registry.npmrc);
  const figures: string[] = [];
  const t = new Way(test);

  await t.step("NP1 both packages are built and published with one version", async () => {
    checkSizes(await deno("task", "--quiet", "build:npm"));
    await checkClientTypes();
    await checkServerComponents();
    for (const name of ["syncline", "create-syncline"]) {
      const folder = join(projectDir, "dist/npm", name);
      const { version, scripts, bundledDependencies } = JSON.parse(
        await Deno.readTextFile(join(folder, "package.json")),
      );
      assert.deepEqual([version, scripts, bundledDependencies], [project.version, undefined, undefined]);
      await machine.done(`npm publish --silent ${folder}`);
    }
    assert.match(
      await Deno.readTextFile(join(projectDir, "CHANGELOG.md")),
      new RegExp(`^## ${project.version} - (?:unreleased|\\d{4}-\\d\\d-\\d\\d)$`, "m"),
    );
  });

  await t.step("NP2 `npm create` creates an app and installs it, without a warning", async () => {
    const { text, ms } = await machine.done("npm create --yes syncline@latest my-app");
    const megabytes = await machine.downloaded() / 1e6;
    const readme = await Deno.readTextFile(join(projectDir, "README.md"));
    assert.ok(readme.includes("\nnpm create syncline@latest my-app\ncd my-app && npm run dev\n"));
    figures.push(`create and install, cold: ${seconds(ms)}, ${megabytes.toFixed(0)} MB downloaded`);
    assert.doesNotMatch(text, /warn|deprecated|error/i);
    assert.match(text, /cd my-app\n\s+npm run dev/);
    const [made, other] = await Promise.all(
      [machine.at("my-app"), machine.at()].map((path) => Deno.stat(path)),
    );
    assert.equal(made?.mode, other?.mode, "open to other users as usual");
    assert.ok(megabytes * 1e6 < BYTES_MAX, figures.join());
    assert.equal((await machine.run("command -v deno")).code, 127);
  });

  await t.step(
    "NP3 `npm run dev` prints type errors of an app that cannot be loaded, and then serves page, functions and dashboard at " +
      "one address, without a network",
    async () => {
      await Deno.writeTextFile(machine.at("my-app/.env"), "GREETING=hello from a file\n");
      const unloadable = machine.at("my-app/functions/unloadable.ts");
      const missing = "paginationOptions";
      await Deno.writeTextFile(unloadable, `import { ${missing} } from "syncline/server";\n${missing};\n`);
      await using dev = machine.start("npm run dev -- --port 0", { at: "my-app", env: NO_NETWORK });
      await dev.line(/does not provide an export named/);
      await dev.line(/functions\/unloadable\.ts\(1,\d+\): error TS\d+: .*paginationOptions/);
      await Deno.remove(unloadable);
      const [, url = ""] = await dev.line(/app +(http:\/\/127\.0\.0\.1:\d+)\//);
      await dev.line(/setup +http.*svc_setup_token=/);
      await dev.line(new RegExp(`dashboard +${url}/_/`));
      assert.match(await textOf(url), /\/@vite\/client/);
      assert.match(await textOf(`${url}/src/main.tsx`), /SynclineProvider/);
      assert.match(await textOf(`${url}/_/`), /<!doctype html>/i);
      assert.match(await textOf(`${url}/_/docs/quickstart`), /<h1 id="quickstart">/);
      await twoClients(machine, url);
      await checkPlainNode(machine, url);
      await edits(machine, dev, url);
      await dev.interrupt();
      assert.ok(dev.output.some((line) => line.includes("Stopping")));
      await assert.rejects(fetch(`${url}/api/health`));
    },
  );

  await t.step("NP4 the server also ends when only the command is killed", async () => {
    await using dev = machine.start("exec node_modules/.bin/syncline dev --port 0", { at: "my-app" });
    const [, url = ""] = await dev.line(/app +(http:\/\/127\.0\.0\.1:\d+)\//);
    await dev.killAlone("/.bin/syncline dev");
    await assert.rejects(fetch(`${url}/api/health`));
  });

  await t.step(
    "NP5 DV9 types work: the app's build checks functions that code and texts name, an editor completes them",
    async () => {
      const remove = await writeTypeTests(machine);
      await machine.done("npm run build", { at: "my-app", env: NO_NETWORK });
      await checkPageCode(machine);
      await checkEditor(machine);
      await remove();
    },
  );

  await t.step("NP6 the app's tests run in Vitest and in Node's own runner", async () => {
    const more = machine.at("my-app/tests/references.test.ts");
    const packaged = machine.at("my-app/functions/packaged.ts");
    await Deno.writeTextFile(more, REFERENCES_TEST);
    await Deno.writeTextFile(packaged, PACKAGED_FUNCTIONS);
    assert.match(
      (await machine.done("node_modules/.bin/vitest run --testTimeout=300000", {
        at: "my-app",
        env: NO_NETWORK,
      })).text,
      /Tests +3 passed/,
    );
    await Deno.remove(more);
    await Deno.remove(packaged);
    await machine.done("npm create --yes syncline@latest small -- --template plain --no-install");
    const { text } = await machine.done("npm test", { at: "small" });
    assert.match(text, /# pass 1\b|pass 1\b/);
  });

  await t.step("NP7 commands find the project in parent folders, and pass on their arguments", async () => {
    const { text } = await machine.done("../../my-app/node_modules/.bin/syncline admin list", {
      at: "my-app/src",
    });
    assert.match(text, /There are no administrators/);
    assert.match(
      (await machine.done("npx syncline --help", { at: "my-app" })).text,
      /syncline dev.*\n[^]*backup/,
    );
  });

  await t.step("NP8 an error is one line, and leaves nothing behind", async () => {
    const before = await names(machine.at());
    const refused = async (command: string, { line, at = "", env = {} }: Refusal) => {
      const { code, text } = await machine.run(command, { at, env });
      assert.equal(code, 1, text);
      assert.match(text.trim(), line);
    };
    await refused("npm create --yes --silent syncline@latest my-app", {
      line: /^syncline: \S+my-app is not empty: choose another name[^\n]*$/,
    });
    const versions = "{value:{...process.versions,node:'18.20.0'}}";
    const old = `data:text/javascript,Object.defineProperty(process,'versions',${versions})`;
    await refused(`node --import "${old}" my-app/node_modules/syncline/bin/syncline.mjs dev`, {
      line: /^Syncline needs Node 20\.19 or newer[^\n]*$/,
    });
    using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    await refused(`node_modules/.bin/syncline dev --port ${taken.addr.port}`, {
      at: "my-app",
      line: /Port \d+ of 127\.0\.0\.1 is in use[^\n]*$/,
    });
    const viteConfig = machine.at("my-app/vite.config.ts");
    const config = await Deno.readTextFile(viteConfig);
    await Deno.writeTextFile(viteConfig, `throw new Error("no plugins today");\n${config}`);
    // The server must have ended, because its output is read here.
    await refused("node_modules/.bin/syncline dev --port 0", {
      at: "my-app",
      line: /^syncline: Vite cannot start: no plugins today[^\n]*$/m,
    });
    await Deno.writeTextFile(viteConfig, config);
    await refused("node ../my-app/node_modules/syncline/bin/syncline.mjs init", {
      at: "small",
      line: /^syncline: \S+ already has a folder "functions"[^\n]*$/,
    });
    await refused("node_modules/.bin/syncline conformance --only keepalive -- node -e 'process.exit(3)'", {
      at: "my-app",
      line: /^FAILED {3}keepalive: .*\n.* The driver ended with exit code 3\n/,
    });
    assert.deepEqual(await names(machine.at()), before);
    await refused(`node ${CREATE} unreached --template plain`, {
      env: NO_NETWORK,
      line:
        /\nsyncline: The files are in \S+unreached, but `npm install` failed: run it again in that folder$/,
    });
    assert.deepEqual(await names(machine.at("unreached")), await names(machine.at("small")));
  });

  await t.step("NP9 `syncline init` adds functions to an existing project", async () => {
    await Deno.mkdir(machine.at("old"));
    await Deno.writeTextFile(
      machine.at("old/package.json"),
      '{\n    "name": "old",\n    "scripts": { "dev": "next dev" }\n}\n',
    );
    const { text } = await machine.done(
      "node ../my-app/node_modules/syncline/bin/syncline.mjs init --no-install",
      { at: "old" },
    );
    assert.match(text, /npm run dev:syncline/);
    const manifest = await Deno.readTextFile(machine.at("old/package.json"));
    assert.match(manifest, /^ {4}"name": "old"/m);
    assert.deepEqual(JSON.parse(manifest).scripts, { dev: "next dev", "dev:syncline": "syncline dev" });
    assert.deepEqual(await names(machine.at("old")), [
      ".cursor",
      ".gitignore",
      ".mcp.json",
      ".vscode",
      "AGENTS.md",
      "functions",
      "package.json",
    ]);
    await using dev = machine.start("../my-app/node_modules/.bin/syncline dev --port 0", {
      at: "old/functions/..",
    });
    const [, url = ""] = await dev.line(/server +(http:\/\/127\.0\.0\.1:\d+)\//);
    assert.equal((await (await fetch(`${url}/api/health`)).json()).status, "ok");
    await dev.interrupt();
  });

  await t.step("NP11 `syncline demo` serves the chat, with the named permission set", async () => {
    await using demo = machine.start("my-app/node_modules/.bin/syncline demo --port 0");
    const [, url = ""] = await demo.line(/app +(http:\/\/127\.0\.0\.1:\d+)\//);
    assert.match(await textOf(url), /<!doctype html>/i);
    assert.deepEqual(await (await call(url, { path: "channels:list" })).value, []);
    const servers = (await demo.commands()).filter((args) => args.includes("/app/cli.ts"));
    assert.equal(servers.length, 1);
    assert.match(servers[0] ?? "", / -P=serve /);
    assert.deepEqual((await demo.commands()).filter((args) => / (?:-A|--allow-all) /.test(args)), []);
    await demo.interrupt();
  });

  await t.step("NP13 `syncline service` starts the package as it is installed", async () => {
    await machine.done("../my-app/node_modules/.bin/syncline service systemd", { at: "small" });
    const unit = await Deno.readTextFile(machine.at("small/syncline.service"));
    assert.match(
      unit,
      /^ExecStart=\S+ \S+\/syncline\/bin\/syncline\.mjs serve --data \/var\/lib\/syncline /m,
    );
  });

  await t.step(
    "NP12 the app moves to another server: deploy, two browsers, a migration, rollback",
    async (t) => {
      await using production = await Production.start(machine);
      figures.push(`deploy of an unchanged app: ${seconds(await deploys(production))}`);
      await twoClients(machine, production.url);
      await t.step({ ...needs(chromium, "two browsers"), fn: () => twoTabs(production.url) });
      await changesSchema(machine, production);
      await refusesDeploys(machine, production);
    },
  );

  // `deno task test:long frameworks` installs each, builds its page and runs its tests.
  await t.step(
    "NP16 the templates for other frameworks pass their own type checks, with the app's tests",
    async () => {
      const packages = new Map<string, string>();
      for (const name of BINDINGS) {
        await machine.done(`node ${CREATE} ${name} --template ${name} --no-install`, { at: "my-app" });
        await checkTemplateManifest(machine, name);
        await checkSharedFiles(machine, `my-app/${name}`);
        const { dependencies, devDependencies } = JSON.parse(
          await Deno.readTextFile(machine.at("my-app", name, "package.json")),
        );
        for (const [name, range] of Object.entries<string>({ ...dependencies, ...devDependencies })) {
          packages.set(name, range);
        }
      }
      // The apps find the packages in the folder above, where most of them are installed already.
      const { dependencies, devDependencies } = JSON.parse(
        await Deno.readTextFile(machine.at("my-app/package.json")),
      );
      for (const name of Object.keys({ ...dependencies, ...devDependencies })) packages.delete(name);
      const specs = Array.from(packages, ([name, range]) => `${name}@${range}`);
      await machine.done(`npm install --no-save ${specs.join(" ")}`, { at: "my-app" });
      const checkWithTools = async () => {
        for (const name of BINDINGS) {
          const at = `my-app/${name}`;
          const check = await typeCheckOf(machine, at);
          if (check !== "tsc") await machine.done(`../node_modules/.bin/${check}`, { at, env: NO_NETWORK });
          else assert.equal(name, "solid");
        }
      };
      await Promise.all([checkWithTools(), checkTypes(machine, "my-app/solid")]);
    },
  );

  // deno-lint-ignore no-console
  console.log(figures.join("\n"));
});

/** Steps that each need those before it. */
class Way {
  readonly #test: Deno.TestContext;
  #open = true;

  constructor(test: Deno.TestContext) {
    this.#test = test;
  }

  async step(name: string, run: (t: Deno.TestContext) => Promise<void>): Promise<void> {
    if (this.#open) this.#open = await this.#test.step(name, run);
  }
}

interface Refusal {
  readonly line: RegExp;
  readonly at?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Two clients of the installed package: each receives what the other adds. */
async function twoClients(machine: NodeMachine, url: string): Promise<void> {
  const Installed = await installedClient(machine);
  const [ada, ben]: Client[] = [new Installed(url), new Installed(url)];
  assert.ok(ada && ben);
  try {
    const seen: unknown[] = [];
    const end = ben.subscribe("tasks:list", {}, (tasks) => seen.push(tasks));
    await until(() => seen.length === 1);
    await ada.auth.signUp({ email: "ada@example.com", password: "secret words" });
    await ada.mutation("tasks:add", { text: "Buy milk" });
    await until(() => seen.length === 2);
    assert.equal((seen[1] as { text: string }[])[0]?.text, "Buy milk");
    end();
  } finally {
    ada.close();
    ben.close();
  }
}

/** The template's page in two browser tabs. */
async function twoTabs(url: string): Promise<void> {
  const browser = await launchChromium();
  const errors: string[] = [];
  try {
    const pages = await Promise.all(["eve", "fay"].map(async (name) => {
      const page = await (await browser.newContext()).newPage();
      page.on("pageerror", ({ message }) => errors.push(message));
      await page.goto(url);
      await page.getByRole("button", { name: "New here?" }).click();
      await page.getByLabel("Email").fill(`${name}@example.com`);
      await page.getByLabel("Password").fill("secret words");
      await page.getByRole("button", { name: "Create an account" }).click();
      await page.getByText("Buy milk").waitFor();
      return page;
    }));
    const [here, there] = pages;
    await here?.getByPlaceholder("What needs to be done?").fill("Call Fay");
    await here?.getByRole("button", { name: "Add" }).click();
    await there?.getByText("Call Fay").waitFor();
    await there?.getByRole("checkbox", { name: "Call Fay" }).check();
    await here?.locator("input:checked").waitFor();
    assert.deepEqual(errors, []);
  } finally {
    await browser.close();
  }
}

/**
 * An edit is served, its lines appear with the function's name, and a type error with file and line. Actions see the
 * variables of `.env`.
 */
async function edits(machine: NodeMachine, dev: Running, url: string): Promise<void> {
  const file = machine.at("my-app/functions/tasks.ts");
  const before = await Deno.readTextFile(file);
  const greeting = machine.at("my-app/functions/greeting.ts");
  await Deno.writeTextFile(
    greeting,
    'import { untypedAction } from "syncline/server";\nexport const get = untypedAction((ctx) => ctx.env["GREETING"] ?? null);\n',
  );
  await Deno.writeTextFile(
    file,
    `${before}\nexport const hello = mutation({
  handler: (ctx) => {
    const wrong: string = 1;
    ctx.log.info("Hello", { wrong });
    return wrong;
  },
});\n`,
  );
  await dev.line(/functions\/tasks\.ts\(\d+,\d+\): error TS\d+/);
  await until(async () =>
    (await call(url, { path: "tasks:hello", kind: "mutation" })).logLines?.length === 1
  );
  await dev.line(/^\d{4}-\d\d-\d\dT[\d:.]+Z INFO +tasks:hello: Hello wrong=1/);
  await until(async () =>
    (await call(url, { path: "greeting:get", kind: "action" })).value === "hello from a file"
  );
  await Deno.remove(greeting);
  await Deno.writeTextFile(file, before);
  await dev.line(/No type errors left/);
  await until(async () => (await call(url, { path: "greeting:get", kind: "action" })).value === undefined);
}

async function call(
  url: string,
  { path, kind = "query" }: { readonly path: string; readonly kind?: "query" | "mutation" | "action" },
): Promise<{ readonly logLines?: readonly string[]; readonly value?: unknown }> {
  const response = await fetch(`${url}/api/${kind}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ path, args: {} }),
  });
  return await response.json();
}

async function textOf(url: string): Promise<string> {
  return await (await fetch(url)).text();
}

async function names(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).toSorted();
}

/** Returns the output. */
async function deno(...args: string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args,
    cwd: projectDir,
    env: { NO_COLOR: "1" },
    stdin: "null",
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
