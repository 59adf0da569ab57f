/** npm packages as esbuild finds them: Deno stores them outside of a `node_modules` folder. */
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/**
 * Links packages of `deno.json` and their dependencies into a new folder, for esbuild's `nodePaths`. `from` is the path or URL of
 * the module that imports them.
 */
export async function linkPackages(folder: string, names: readonly string[], from: string): Promise<void> {
  const require = createRequire(from);
  for (const name of names) {
    const file = resolved(require, name);
    if (file === null) continue;
    const link = join(folder, name);
    await Deno.mkdir(dirname(link), { recursive: true });
    const source = await packageFolder(file, name);
    try {
      await Deno.symlink(source, link);
    } catch (error) {
      if (error instanceof Deno.errors.AlreadyExists) continue;
      throw error;
    }
    const { dependencies = {} } = await manifest(source);
    await linkPackages(folder, Object.keys(dependencies), join(source, "package.json"));
  }
}

/** Returns the main file of a package; `null` for one that has only types. */
function resolved(require: ReturnType<typeof createRequire>, name: string): string | null {
  try {
    return require.resolve(name);
  } catch {
    return null;
  }
}

interface Manifest {
  readonly name?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

async function manifest(folder: string): Promise<Manifest> {
  try {
    return JSON.parse(await Deno.readTextFile(join(folder, "package.json")));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return {};
    throw error;
  }
}

/** Returns the folder of a package that contains a file. */
async function packageFolder(file: string, name: string): Promise<string> {
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
    if ((await manifest(folder)).name === name) return folder;
  }
  throw new Error(`Cannot find the package ${name} of ${file}`);
}
