/** An npm registry of the test's own: verdaccio, which has what was published to it and fetches all else from the usual one. */
import { lines } from "../../bench/support/lines.ts";
import { TempFolder } from "../../support/temp_folder.ts";

const VERDACCIO = "5.33.0";

const PACKAGE = JSON.stringify({
  private: true,
  // It asks for a tag of this package that not every registry has.
  overrides: { "node-fetch": "2.7.0" },
  dependencies: { verdaccio: VERDACCIO },
});

/** Starts it on a free port, and prints that. */
const SERVER = `
const { runServer } = require("verdaccio");
const everybody = { access: "$all", publish: "$all", unpublish: "$all" };
const config = {
  self_path: __dirname,
  storage: __dirname + "/storage",
  uplinks: { usual: { url: process.argv[2], cache: false, maxage: "60m" } },
  packages: { syncline: everybody, "create-syncline": everybody, "**": { access: "$all", proxy: "usual" } },
  web: { enable: false },
  max_body_size: "100mb",
  log: { type: "stdout", format: "pretty", level: "error" },
};
runServer(config).then((app) => {
  const server = app.listen(0, "127.0.0.1", () => console.log("port " + server.address().port));
});
`;

export class Registry implements AsyncDisposable {
  /** Ends in a slash. */
  readonly url: string;
  readonly #folder: TempFolder;
  readonly #child: Deno.ChildProcess;
  readonly #reading: Promise<void>;

  private constructor(
    { url, folder, child, reading }: {
      readonly url: string;
      readonly folder: TempFolder;
      readonly child: Deno.ChildProcess;
      readonly reading: Promise<void>;
    },
  ) {
    this.url = url;
    this.#folder = folder;
    this.#child = child;
    this.#reading = reading;
  }

  /** Installs and starts it; why not, where npm cannot install. */
  static async start(): Promise<Registry | string> {
    const folder = await TempFolder.with({ "package.json": PACKAGE, "server.cjs": SERVER });
    const install = await new Deno.Command("npm", {
      args: "install --no-audit --no-fund --ignore-scripts --prefer-offline --loglevel=error".split(" "),
      cwd: folder.path,
      stdin: "null",
    }).output();
    if (!install.success) {
      await folder[Symbol.asyncDispose]();
      return new TextDecoder().decode(install.stderr);
    }
    const { stdout } = await new Deno.Command("npm", {
      args: ["config", "get", "registry"],
      cwd: folder.path,
    })
      .output();
    const child = new Deno.Command("node", {
      args: ["server.cjs", new TextDecoder().decode(stdout).trim()],
      cwd: folder.path,
      stdin: "null",
      stdout: "piped",
    }).spawn();
    const port = Promise.withResolvers<string>();
    const reading = (async () => {
      for await (const line of lines(child.stdout)) {
        const found = /^port (\d+)/.exec(line)?.[1];
        if (found !== undefined) port.resolve(found);
      }
      port.reject(new Error("The registry has ended"));
    })();
    const url = `http://127.0.0.1:${await port.promise}/`;
    return new Registry({ url, folder, child, reading });
  }

  /** What a user's `.npmrc` says to use it. */
  get npmrc(): string {
    const { host } = new URL(this.url);
    return `registry=${this.url}\n//${host}/:_authToken=anybody\naudit=false\nfund=false\nupdate-notifier=false\n`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#child.status;
    await this.#reading;
    await this.#folder[Symbol.asyncDispose]();
  }
}
