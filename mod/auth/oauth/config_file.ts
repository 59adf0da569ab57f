/** Watches the configuration file: reads it at the start, and again when it or a secret file changes. */
import { dirname, resolve } from "node:path";
import type { Log } from "../../kit/log.ts";
import { RecurringWork } from "../../kit/clock.ts";
import { externalLimits } from "../limits.ts";
import { AuthConfigError, type ExternalAuth, readAuthConfig } from "./auth_config.ts";
import type { PresetParts } from "./preset.ts";

export interface AuthConfigFileOptions {
  readonly path: string;
  readonly env: (name: string) => string | undefined;
  readonly parts: PresetParts;
  readonly log: Log;
}

export class AuthConfigFile implements AsyncDisposable {
  readonly #options: AuthConfigFileOptions;
  readonly #watch: RecurringWork;
  #externalAuth: ExternalAuth;
  /** Fingerprint of the files as read last, from modification times and sizes. */
  #state: string;
  /** The secret files used. */
  #files: ReadonlySet<string>;

  private constructor(options: AuthConfigFileOptions, { externalAuth, files, state }: ReadConfig) {
    this.#options = options;
    this.#externalAuth = externalAuth;
    this.#files = files;
    this.#state = state;
    this.#watch = new RecurringWork({
      intervalMs: externalLimits.configPollMs,
      work: () => this.#look(),
      onError: (error) => options.log("warn", `${options.path} cannot be checked for changes`, { error }),
    });
  }

  /** Reads the file. Throws {@linkcode AuthConfigError} with the path if it is unusable. */
  static async open(options: AuthConfigFileOptions): Promise<AuthConfigFile> {
    return new AuthConfigFile(options, await read(options));
  }

  get externalAuth(): ExternalAuth {
    return this.#externalAuth;
  }

  /** Reads the file without making it effective. Throws {@linkcode AuthConfigError}. */
  async readAgain(): Promise<ExternalAuth> {
    return (await read(this.#options)).externalAuth;
  }

  /** Checks for changes now; also runs periodically. */
  look(): Promise<void> {
    return this.#watch.run();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#watch[Symbol.asyncDispose]();
  }

  async #look(): Promise<void> {
    const { path, log } = this.#options;
    const state = await stateOf([path, ...this.#files]);
    if (state === this.#state) return;
    this.#state = state;
    try {
      const { externalAuth, files, state } = await read(this.#options);
      this.#externalAuth = externalAuth;
      this.#files = files;
      this.#state = state;
      log("info", `Reloaded ${path}`, { providers: [...externalAuth.providers.keys()].join(",") });
    } catch (error) {
      if (!(error instanceof AuthConfigError)) throw error;
      log("error", `${error.message}. The previous configuration stays in effect`);
    }
  }
}

interface ReadConfig {
  readonly externalAuth: ExternalAuth;
  readonly files: ReadonlySet<string>;
  readonly state: string;
}

async function read({ path, env, parts }: AuthConfigFileOptions): Promise<ReadConfig> {
  const files = new Set<string>();
  const before = await stateOf([path]);
  try {
    const externalAuth = await readAuthConfig(await readSmall(path), {
      sources: {
        env,
        readFile(name) {
          const file = resolve(dirname(path), name);
          files.add(file);
          return readSecret(file);
        },
      },
      parts,
    });
    // Take the fingerprint before reading, so that an edit in between is detected by the next check.
    return {
      externalAuth,
      files,
      state: [before, await stateOf([...files])].filter((part) => part !== "").join("\n"),
    };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new AuthConfigError(`Cannot use ${path}: ${reason}`, { cause: error });
  }
}

async function readSecret(path: string): Promise<string> {
  try {
    return await readSmall(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotCapable)) throw error;
    throw new Error("the server has no permission to read it: restart the server", { cause: error });
  }
}

async function readSmall(path: string): Promise<string> {
  const { size } = await Deno.stat(path);
  if (size > externalLimits.configBytesMax) {
    throw new RangeError(`the file is larger than ${externalLimits.configBytesMax} bytes`);
  }
  return await Deno.readTextFile(path);
}

/** One line for each file, which changes when the file does. */
async function stateOf(paths: readonly string[]): Promise<string> {
  const lines = await Promise.all(paths.map(async (path) => {
    try {
      const { mtime, size, ino } = await Deno.stat(path);
      return `${path} ${mtime?.getTime()} ${size} ${ino}`;
    } catch {
      return `${path} missing`;
    }
  }));
  return lines.join("\n");
}
