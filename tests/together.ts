/**
 * Test files that share a process: each process of the runtime's loads all that its file tests, which takes longer than most
 * files do. One module that imports several has them loaded once.
 */
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

/** What a file says that changes what there is one of in a process, or lets go of what it started: it is by itself. */
const BY_ITSELF =
  /hromium|testDashboard|with(?:Client|Hooks)Page|new Worker|^ +sanitize\w+: false|Deno\.(?:chdir|exit|env\.(?:set|delete)|test\.(?:before|after))/m;
/** Files that start many processes or servers, and take longer than others should wait for: by themselves, too. */
const LONG = [
  "tests/auth/server",
  "tests/client/fault_proxy_test.ts",
  "tests/client/known_paths_test.ts",
  "tests/cluster/forwarding_test.ts",
  "tests/cluster/lease_test.ts",
  "tests/cluster/rows_test.ts",
  "tests/cluster/servers_test.ts",
  "tests/cluster/workers_test.ts",
  "tests/docs/guide_app_test.ts",
  "tests/durability",
  "tests/functions/host/isolate_host_test.ts",
  "tests/functions/host/misbehaviour_test.ts",
  "tests/functions/host/versions_test.ts",
  "tests/functions/packages/real_packages_test.ts",
  "tests/functions/packages/resolution_test.ts",
  "tests/ops/admin/settings_test.ts",
  "tests/ops/deploy/deploy_steps_test.ts",
  "tests/ops/log/log_server_test.ts",
  "tests/ops/replication/bucket_files_test.ts",
  "tests/ops/replication/command_test.ts",
  "tests/ops/replication/disk_full_test.ts",
  "tests/ops/replication/drill_test.ts",
  "tests/ops/replication/follower_test.ts",
  "tests/ops/replication/kill_test.ts",
  "tests/ops/replication/process_kill_test.ts",
  "tests/ops/replication/server_test.ts",
  "tests/ops/replication/steps_test.ts",
  "tests/ops/restore/apply_test.ts",
  "tests/ops/server",
  "tests/scheduler/kill_test.ts",
  "tests/server/backup_command_test.ts",
  "tests/server/deploy_command_test.ts",
  "tests/server/export_command_test.ts",
  "tests/server/import_command_test.ts",
  "tests/server/serve_process_test.ts",
  "tests/server/snapshot_import_test.ts",
  "tests/server/takeover_test.ts",
  "tests/sim",
  "tests/storage/hostile_images_test.ts",
];
/** Files that share what they build: in one process it is built once. They take long, and begin first. */
const SHARING = ["tests/build"];
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
  const shared = files.filter((file, i) => !isOf(LONG, file) && !BY_ITSELF.test(texts[i] ?? "")).toSorted();
  const small = shared.filter((file) => !isOf(SHARING, file));
  const groups = SHARING.map((path) => shared.filter((file) => isOf([path], file)));
  for (let at = 0; at < small.length; at += FILES_MAX) groups.push(small.slice(at, at + FILES_MAX));
  const modules: string[] = [];
  for (const group of groups.filter(({ length }) => length > 0)) {
    const name = dirname(group[0] ?? "").replaceAll("/", "_");
    const path = join(folder, `${name}_${modules.length + 1}.ts`);
    const lines = group.map((file) =>
      `import ${JSON.stringify(pathToFileURL(join(repository, file)).href)};\n`
    );
    await Deno.writeTextFile(path, lines.join(""));
    modules.push(path);
  }
  return { apart: files.filter((file) => !shared.includes(file)), together: modules };
}

/** Whether a file is one of these, or below one of them. */
export function isOf(paths: readonly string[], file: string): boolean {
  return paths.some((path) => file === path || file.startsWith(`${path}/`));
}
