/** The process of a worker, from start to end. */
import { fileURLToPath } from "node:url";
import { allowedPaths, encodeJsonLine, HelperProcess } from "../../kit/processes/helper_process.ts";
import { entryModule, programRoot } from "../../kit/processes/program_root.ts";
import { workerLimits } from "../limits.ts";
import { PROGRAM_FILES, socketFolders } from "../permissions/narrow.ts";
import type { WorkerBoot } from "./boot.ts";

const OWN_FILES = PROGRAM_FILES.map((path) => fileURLToPath(new URL(path, programRoot)));

const VARIABLES = ["HOME", "DENO_DIR", "XDG_CACHE_HOME", "PATH", "TMPDIR", "NPM_CONFIG_REGISTRY", "NO_COLOR"];
const LIBRARIES = [
  "/lib/x86_64-linux-gnu/libc.so.6",
  "/lib/aarch64-linux-gnu/libc.so.6",
  "/lib64/libc.so.6",
  "/usr/lib/libc.so.6",
];

/** Permissions of a worker: reads data, program and frontend, writes data. Any network: socket names are not known yet. */
export async function workerPermissions({ config, link, passed }: WorkerBoot): Promise<readonly string[]> {
  const { dataDir, staticDir } = config;
  const data = [dataDir, await Deno.realPath(dataDir)];
  const write = [...data, link.path, passed.path, ...await socketFolders(dataDir)];
  const read = [...write, ...OWN_FILES, ...(staticDir === null ? [] : [staticDir])];
  return [
    `--allow-read=${allowedPaths(unique(read))}`,
    `--allow-write=${allowedPaths(unique(write))}`,
    "--allow-net",
    "--deny-net=169.254.0.0/16",
    "--allow-import=none.invalid",
    "--allow-run=sh",
    `--allow-ffi=${LIBRARIES.join(",")}`,
    "--allow-sys=systemMemoryInfo",
    `--allow-env=${VARIABLES.join(",")}`,
  ];
}

function unique(paths: readonly string[]): readonly string[] {
  return [...new Set(paths)];
}

export class WorkerProcess {
  readonly #process: HelperProcess;
  readonly name: string;

  private constructor(process: HelperProcess, name: string) {
    this.#process = process;
    this.name = name;
  }

  static async start(boot: WorkerBoot): Promise<WorkerProcess> {
    const process = new HelperProcess({
      entry: entryModule("mod/server/worker/main.ts"),
      permissions: await workerPermissions(boot),
      dataMiB: workerLimits.dataMiB,
      niceness: 0,
      stderr: "inherit",
    });
    // A worker that has ended is handled when its status resolves.
    process.input.write(encodeJsonLine(boot)).then(() => process.input.close()).catch(() => {});
    void process.output.pipeTo(new WritableStream()).catch(() => {});
    return new WorkerProcess(process, boot.name);
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Resolves when the process has ended. */
  get ended(): Promise<Deno.CommandStatus> {
    return this.#process.status;
  }

  kill(): void {
    this.#process.kill();
  }
}
