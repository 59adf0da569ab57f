/** Handle of the process that works with a target, in the main process. */
import {
  allowedPaths,
  encodeJsonLine,
  HelperProcess,
  readJsonLines,
} from "../../../kit/processes/helper_process.ts";
import { entryModule } from "../../../kit/processes/program_root.ts";
import { replicationLimits } from "../../limits.ts";
import type { Begin, FromProcess, ToProcess } from "./messages.ts";
import type { BucketLocation } from "../../../kit/locations/object_store.ts";

/** V8 lets its heap grow far beyond what is in use: the tasks for restores in `deno.json` have the same. */
const HEAP_FLAGS = "--max-old-space-size=256,--max-semi-space-size=4";

/** Environment variables read by the S3 client. */
const CLIENT_ENV = [
  "AWS_LAMBDA_BENCHMARK_MODE",
  "AWS_LAMBDA_FUNCTION_NAME",
  "AWS_LAMBDA_MAX_CONCURRENCY",
  "AWS_LAMBDA_NODEJS_NO_GLOBAL_AWSLAMBDA",
  "AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED",
  "_X_AMZN_TRACE_ID",
];

export class ReplicaProcess {
  readonly #process: HelperProcess;
  /** Resolves when the process has exited and all its messages were handled. Never rejects. */
  readonly ended: Promise<void>;

  private constructor(process: HelperProcess, onMessage: (message: FromProcess) => void) {
    this.#process = process;
    this.ended = this.#listen(onMessage);
  }

  /** Starts a process with access to the data folder and the target of `begin`. */
  static async start(begin: Begin, onMessage: (message: FromProcess) => void): Promise<ReplicaProcess> {
    const folders = [...new Set([begin.dataDir, await Deno.realPath(begin.dataDir)])];
    if (begin.target.kind === "folder") {
      const { path } = begin.target;
      folders.push(path, await Deno.realPath(path).catch(() => path));
    }
    const allowed = allowedPaths(folders);
    const ofBucket = begin.target.kind === "bucket"
      ? [`--allow-net=${hostsOf(begin.target.bucket).join(",")}`, `--allow-env=${CLIENT_ENV.join(",")}`]
      : [];
    const helper = new HelperProcess({
      entry: entryModule("mod/ops/replication/process/main.ts"),
      permissions: [
        `--allow-read=${allowed}`,
        `--allow-write=${allowed}`,
        "--allow-sys=statfs",
        ...ofBucket,
      ],
      dataMiB: replicationLimits.processDataMiB,
      heapFlags: HEAP_FLAGS,
      stderr: "inherit",
    });
    const process = new ReplicaProcess(helper, onMessage);
    process.send(begin);
    return process;
  }

  send(message: ToProcess): void {
    // `ended` reports a process that has exited.
    this.#process.input.write(encodeJsonLine(message)).catch(() => {});
  }

  /** Waits a bounded time for the work in progress, then ends the process. */
  async close(waitMs: number): Promise<void> {
    void this.#process.input.close().catch(() => {});
    const late = setTimeout(() => this.kill(), waitMs);
    await this.ended;
    clearTimeout(late);
  }

  kill(): void {
    this.#process.kill();
  }

  async #listen(onMessage: (message: FromProcess) => void): Promise<void> {
    try {
      for await (const line of readJsonLines(this.#process.output, replicationLimits.lineCharsMax)) {
        onMessage(JSON.parse(line) as FromProcess);
      }
    } catch {
      // Output that is not a message: the process is unusable.
      this.kill();
    }
    await this.#process.status;
    await this.#process.input.abort().catch(() => {});
  }
}

/** Returns the hosts that the client of a bucket connects to. */
function hostsOf(location: BucketLocation): string[] {
  if (location.endpoint !== null) {
    const { hostname, port, protocol } = new URL(location.endpoint);
    return [`${hostname}:${port === "" ? (protocol === "https:" ? 443 : 80) : port}`];
  }
  const { bucket, region } = location;
  const hosts = [`s3.${region}.amazonaws.com`, `s3.dualstack.${region}.amazonaws.com`, "s3.amazonaws.com"];
  return hosts.flatMap((host) => [`${host}:443`, `${bucket}.${host}:443`]);
}
