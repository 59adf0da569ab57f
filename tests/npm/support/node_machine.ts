/** A machine with Node and npm alone, and a home that is empty but for the address of a registry. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { lines } from "../../support/processes/lines.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { found } from "../../support/waiting.ts";

/** Programs that npm and the commands use; Deno is not among them. */
const PROGRAMS = ["node", "npm", "npx", "sh", "env", "git", "cat", "uname", "ldd", "nice", "ln"];

/** Environment variables about proxies and certificates of the network, if any. */
const NETWORK = ["NODE_EXTRA_CA_CERTS", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];

export interface Ended {
  readonly code: number;
  /** Standard output and standard error. */
  readonly text: string;
  readonly ms: number;
}

export class NodeMachine implements AsyncDisposable {
  readonly #folder: TempFolder;
  readonly #env: Record<string, string>;
  /** Not in the machine's path. */
  readonly #setsid: string;

  private constructor(
    folder: TempFolder,
    { env, setsid }: { readonly env: Record<string, string>; readonly setsid: string },
  ) {
    this.#folder = folder;
    this.#env = env;
    this.#setsid = setsid;
  }

  static async create(npmrc: string): Promise<NodeMachine> {
    const folder = await TempFolder.with({ "home/.npmrc": npmrc, "work/empty": "" });
    await Deno.remove(folder.at("work/empty"));
    await Deno.mkdir(folder.at("bin"));
    for (const name of PROGRAMS) {
      const path = await which(name);
      if (path !== null) await Deno.symlink(path, folder.at("bin", name));
    }
    const env = { HOME: folder.at("home"), PATH: folder.at("bin"), NO_COLOR: "1", ...network() };
    return new NodeMachine(folder, { env, setsid: await which("setsid") ?? "setsid" });
  }

  /** A path below the folder that the user works in. */
  at(...names: string[]): string {
    return this.#folder.at("work", ...names);
  }

  /** Bytes that npm has downloaded: packages as cached, metadata as compressed for transfer. */
  async downloaded(): Promise<number> {
    return await compressedSize(this.#folder.at("home/.npm/_cacache/content-v2"));
  }

  /** Runs a command line in a folder below the user's. */
  async run(command: string, { at = "", env = {} }: Place = {}): Promise<Ended> {
    const begun = performance.now();
    const { code, stdout, stderr } = await this.#command(command, { at, env }).output();
    const decoder = new TextDecoder();
    return {
      code,
      text: decoder.decode(stdout) + decoder.decode(stderr),
      ms: Math.round(performance.now() - begun),
    };
  }

  /** The same for one that has to succeed. */
  async done(command: string, place: Place = {}): Promise<Ended> {
    const ended = await this.run(command, place);
    assert.equal(ended.code, 0, `${command}:\n${ended.text}`);
    return ended;
  }

  /** Starts a command that keeps running, in a separate process group, like in a terminal. */
  start(command: string, place: Place = {}): Running {
    return new Running(this.#command(command, place).spawn());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#folder[Symbol.asyncDispose]();
  }

  #command(command: string, { at = "", env = {} }: Place): Deno.Command {
    return new Deno.Command(this.#setsid, {
      args: ["sh", "-c", command],
      cwd: this.at(at),
      clearEnv: true,
      env: { ...this.#env, ...env },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    });
  }
}

interface Place {
  /** Folder below the user's. */
  readonly at?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A command that keeps running. */
export class Running implements AsyncDisposable {
  readonly output: string[] = [];
  readonly #child: Deno.ChildProcess;
  readonly #reading: Promise<unknown>;
  #over = false;

  constructor(child: Deno.ChildProcess) {
    this.#child = child;
    const read = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>) => {
      for await (const line of lines(stream)) this.output.push(line);
    };
    this.#reading = Promise.all([read(child.stdout), read(child.stderr)]).then(() => this.#over = true);
  }

  /** Waits for a line of output that matches and returns it. */
  async line(pattern: RegExp): Promise<RegExpExecArray> {
    return await found(() => {
      for (const line of this.output) {
        const match = pattern.exec(line);
        if (match !== null) return match;
      }
      assert.ok(!this.#over, `It has ended without ${pattern}:\n${this.output.join("\n")}`);
      return null;
    }, { what: () => `${pattern} in:\n${this.output.join("\n")}`, everyMs: 20 });
  }

  /** Sends Ctrl-C to the whole group. Resolves when no process has the output open any more. */
  async interrupt(): Promise<void> {
    await signalGroup(this.#child.pid, "INT");
    await this.#child.status;
    await this.#reading;
  }

  /** Command lines of the group. */
  async commands(): Promise<string[]> {
    return (await this.#processes()).map(({ args }) => args);
  }

  /** Kills the process with this program in its command line, and no other. */
  async killAlone(part: string): Promise<void> {
    for (const { pid, args } of await this.#processes()) {
      if (args.includes(part)) Deno.kill(pid, "SIGKILL");
    }
    await this.#reading;
    await this.#child.status;
  }

  async #processes(): Promise<{ readonly pid: number; readonly args: string }[]> {
    const listed = await new Deno.Command("ps", { args: ["-A", "-ww", "-o", "pid=,pgid=,args="] }).output();
    return new TextDecoder().decode(listed.stdout).split("\n").flatMap((line) => {
      const [, pid, group, args = ""] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
      return Number(group) === this.#child.pid ? [{ pid: Number(pid), args }] : [];
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await signalGroup(this.#child.pid, "KILL");
    await this.#child.status;
    await this.#reading;
  }
}

function network(): Record<string, string> {
  const given = NETWORK.flatMap((name) => {
    const value = Deno.env.get(name);
    return value === undefined ? [] : [[name, value]];
  });
  if (given.every(([name = ""]) => !/proxy/i.test(name))) return Object.fromEntries(given);
  return { ...Object.fromEntries(given), NO_PROXY: "127.0.0.1", no_proxy: "127.0.0.1" };
}

async function signalGroup(leader: number, signal: string): Promise<void> {
  await new Deno.Command("kill", { args: [`-${signal}`, "--", `-${leader}`], stderr: "null" }).output();
}

async function which(program: string): Promise<string | null> {
  const { success, stdout } = await new Deno.Command("sh", { args: ["-c", 'command -v "$0"', program] })
    .output();
  return success ? new TextDecoder().decode(stdout).trim() : null;
}

async function compressedSize(folder: string): Promise<number> {
  let bytes = 0;
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = join(folder, name);
    bytes += isDirectory ? await compressedSize(path) : compressed(await Deno.readFile(path)).byteLength;
  }
  return bytes;
}

const GZIP = 0x1f;

function compressed(contents: Uint8Array): Uint8Array {
  return contents[0] === GZIP ? contents : gzipSync(contents);
}
