/** The npm package in a project made for the test, installed as an app team installs it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const projectDir = fileURLToPath(new URL("../../../../", import.meta.url));
const sources = new URL("../project/", import.meta.url);

/** Output of a program that has exited. */
interface Output {
  readonly success: boolean;
  readonly text: string;
}

export class NodeProject implements AsyncDisposable {
  readonly dir: string;

  private constructor(dir: string) {
    this.dir = dir;
  }

  /** Copies the project's files and installs the package built last. */
  static async create(): Promise<NodeProject> {
    const project = new NodeProject(await Deno.makeTempDir({ prefix: "syncline_npm_" }));
    try {
      await copyFolder(sources, project.dir);
      const pack = await project.run("npm", ["pack", join(projectDir, "dist/client"), "--silent"]);
      assert(pack.success, pack.text);
      const archive = pack.text.trim().split("\n").at(-1) ?? "";
      await Deno.rename(join(project.dir, archive), join(project.dir, "syncline.tgz"));
      const install = await project.run("npm", [
        ..."install --no-audit --no-fund --ignore-scripts --prefer-offline --loglevel=error".split(" "),
      ]);
      assert(install.success, install.text);
      return project;
    } catch (error) {
      await project[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Runs a program in the project. */
  async run(program: string, args: readonly string[]): Promise<Output> {
    const { success, stdout, stderr } = await new Deno.Command(program, {
      args: [...args],
      cwd: this.dir,
      env: { NO_COLOR: "1" },
      stdin: "null",
    }).output();
    const decoder = new TextDecoder();
    return { success, text: `${decoder.decode(stderr)}${decoder.decode(stdout)}` };
  }

  /** Runs a program of an installed package with Node; throws what it printed when it fails. */
  async node(script: string, ...args: string[]): Promise<string> {
    const { success, text } = await this.run("node", [script, ...args]);
    assert(success, text);
    return text;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.dir, { recursive: true });
  }
}

async function copyFolder(from: URL, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    const path = join(to, name);
    if (isDirectory) await copyFolder(new URL(`${name}/`, from), path);
    else await Deno.copyFile(new URL(name, from), path);
  }
}
