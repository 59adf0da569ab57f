/**
 * Test files that share a process: each process of the runtime's loads all that its file tests, which takes longer than most
 * files do. One module that imports several has them loaded once.
 */
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * What a file says that is by itself: it starts processes, servers or browsers, and takes its time, or it changes what there
 * is one of in a process.
 */
const BY_ITSELF =
  /[Pp]rocess\b|[Pp]ostgres|RealHost|IsolateHost|TestServer|hromium|testDashboard|with(?:Client|Hooks)Page|startBackend|Workspace\(|support\/commands|new Worker|Deno\.(?:Command|chdir|exit|env\.(?:set|delete)|test\.(?:before|after))|SYNCLINE_/;
/** The language itself is changed in them. */
const FOLDERS_BY_ITSELF = ["tests/functions/isolate"];
/** In one process: what breaks off breaks off all of them. */
const FILES_MAX = 16;

export interface Together {
  /** Files by themselves, below the repository. */
  readonly apart: readonly string[];
  /** Paths of modules that import the others. */
  readonly together: readonly string[];
}

/** Finds files that may share a process with their neighbours, and writes modules that import them into a folder. */
export async function together(
  files: readonly string[],
  { repository, folder }: { readonly repository: string; readonly folder: string },
): Promise<Together> {
  const texts = await Promise.all(files.map((file) => Deno.readTextFile(join(repository, file))));
  const small = files.filter((file, i) =>
    !FOLDERS_BY_ITSELF.includes(dirname(file)) && !BY_ITSELF.test(texts[i] ?? "")
  ).toSorted();
  const modules: string[] = [];
  for (let at = 0; at < small.length; at += FILES_MAX) {
    const some = small.slice(at, at + FILES_MAX);
    const name = dirname(some[0] ?? "").replaceAll("/", "_");
    const path = join(folder, `${name}_${modules.length + 1}.ts`);
    const lines = some.map((file) =>
      `import ${JSON.stringify(pathToFileURL(join(repository, file)).href)};\n`
    );
    await Deno.writeTextFile(path, lines.join(""));
    modules.push(path);
  }
  return { apart: files.filter((file) => !small.includes(file)), together: modules };
}
