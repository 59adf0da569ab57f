/**
 * Distributes test files over processes. Loading modules takes longer than running most files, so small files
 * share a process, in which one module imports them all.
 */
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

/** Test files that run in one process. */
export interface Job {
  readonly name: string;
  /** The test file, or a module that imports several. */
  readonly module: string;
  /** Whether servers and isolates start from the sources instead of the bundled program. */
  readonly fromSources: boolean;
}

/** Each of these tests the installation, or names modules of the sources. */
const FROM_SOURCES = [
  "tests/functions/isolate/import_message_test.ts",
  "tests/functions/isolate/shared_objects_test.ts",
  "tests/npm/from_nothing_test.ts",
];

/** Files with a separate process because they take long, slowest first. Update the order from the times of a run. */
const SLOW = [
  "tests/npm/from_nothing_test.ts",
  "tests/cluster/deploy_test.ts",
  "tests/server/serve_process_test.ts",
  "tests/cluster/faults_test.ts",
  "tests/dashboard/people_test.ts",
  "tests/dashboard/functions_test.ts",
  "tests/dashboard/server_test.ts",
  "tests/auth/server",
  "tests/ops/server",
  "tests/functions/host/misbehaviour_test.ts",
  "tests/ops/deploy/deploy_steps_test.ts",
  "tests/cluster/workers_test.ts",
  "tests/functions/packages/real_packages_test.ts",
  "tests/examples/chat_test.ts",
  "tests/dashboard/data_test.ts",
  "tests/examples/react_templates_test.ts",
  "tests/examples/todo_files_test.ts",
  "tests/hostile",
  "tests/docs/guide_app_test.ts",
  "tests/storage/hostile_images_test.ts",
  "tests/storage/tus_server_test.ts",
  "tests/cluster/rows_test.ts",
  "tests/cluster/forwarding_test.ts",
  "tests/cluster/lease_test.ts",
  "tests/ops/maintenance_test.ts",
  "tests/server/takeover_test.ts",
  "tests/functions/host/isolate_host_test.ts",
  "tests/cluster/servers_test.ts",
  "tests/cluster/chat_test.ts",
  "tests/ops/restore/process_test.ts",
  "tests/client/react/hooks_test.tsx",
  "tests/ops/replication/follower_test.ts",
  "tests/ops/replication/disk_full_test.ts",
  "tests/ops/replication/server_test.ts",
  "tests/server/import_command_test.ts",
  "tests/functions/host/versions_test.ts",
  "tests/ops/replication/drill_test.ts",
  "tests/ops/replication/process_kill_test.ts",
  "tests/storage/real_server_test.ts",
  "tests/scheduler/kill_test.ts",
  "tests/server/deploy_command_test.ts",
  "tests/server/backup_command_test.ts",
  "tests/server/export_command_test.ts",
  "tests/ops/replication/steps_test.ts",
  "tests/ops/replication/kill_test.ts",
  "tests/client/known_paths_test.ts",
  "tests/consistency/consistency_test.ts",
  "tests/server/snapshot_import_test.ts",
  "tests/ops/restore/apply_test.ts",
  "tests/ops/admin/settings_test.ts",
  "tests/functions/packages/resolution_test.ts",
  "tests/ops/log/log_server_test.ts",
  "tests/durability",
  "tests/client/fault_proxy_test.ts",
  "tests/ops/replication/bucket_files_test.ts",
];

/**
 * Files that inspect or kill child processes of the test process, or change its working directory: no other file may share
 * their process.
 */
const ISOLATED = [
  "tests/functions/host/run_observer_test.ts",
  "tests/ops/maintenance_test.ts",
  "tests/server/config_test.ts",
  "tests/storage/image_process_test.ts",
  "tests/storage/real_server_test.ts",
];

/** Matches the source of files that change global state or leave resources open, which would affect other files of a process. */
const NOT_SHARED =
  /hromium|testDashboard|with(?:Client|Hooks)Page|new Worker|^ +sanitize\w+: false|Deno\.(?:chdir|exit|env\.(?:set|delete)|test\.(?:before|after))/m;

/** Folders whose files share built files. */
const BUILD = ["tests/build"];

/**
 * Files that share a process although they take long: a browser, or a few seconds for modules that each of them loads. A
 * group starts when its first file would.
 */
const GROUPS = [
  ["tests/dashboard/people_test.ts", "tests/dashboard/settings_test.ts", "tests/dashboard/live_test.ts"],
  [
    "tests/dashboard/functions_test.ts",
    "tests/dashboard/versions_test.ts",
    "tests/dashboard/table_views_test.ts",
  ],
  [
    "tests/examples/react_templates_test.ts",
    "tests/examples/framework_templates_test.ts",
    "tests/examples/plain_template_test.ts",
  ],
  [
    "tests/examples/todo_files_test.ts",
    "tests/examples/todo_page_test.ts",
    "tests/examples/todo_passkeys_test.ts",
    "tests/examples/todo_providers_test.ts",
  ],
  [
    "tests/ops/replication/follower_test.ts",
    "tests/ops/replication/drill_test.ts",
    "tests/ops/replication/steps_test.ts",
  ],
  [
    "tests/ops/replication/disk_full_test.ts",
    "tests/ops/replication/server_test.ts",
    "tests/ops/replication/process_kill_test.ts",
    "tests/ops/replication/kill_test.ts",
  ],
  [
    "tests/ops/server/bucket_backups_test.ts",
    "tests/ops/server/cycle_test.ts",
    "tests/ops/server/import_process_test.ts",
    "tests/ops/server/metrics_server_test.ts",
    "tests/ops/server/restart_process_test.ts",
    "tests/ops/server/telemetry_server_test.ts",
    "tests/ops/server/scheduled_test.ts",
    "tests/ops/admin/settings_test.ts",
    "tests/ops/log/log_server_test.ts",
    "tests/ops/replication/bucket_files_test.ts",
  ],
  [
    "tests/server/import_command_test.ts",
    "tests/server/deploy_command_test.ts",
    "tests/server/backup_command_test.ts",
    "tests/server/export_command_test.ts",
    "tests/server/snapshot_import_test.ts",
  ],
  [
    "tests/auth/server/admin_command_test.ts",
    "tests/auth/server/anonymous_test.ts",
    "tests/auth/server/api_key_test.ts",
    "tests/auth/server/passkey_test.ts",
    "tests/auth/server/second_factor_test.ts",
    "tests/auth/server/callers_test.ts",
    "tests/auth/server/live_test.ts",
    // Last, because they leave timers and pipes of the browser's driver behind.
    "tests/auth/server/account_page_test.ts",
    "tests/auth/server/external_auth_test.ts",
    "tests/auth/server/fragment_test.ts",
  ],
];

/**
 * Files in one process. Loading the modules of a group takes up to three seconds of processor time, so groups are large. A
 * crash ends all of them.
 */
const FILES_MAX = 48;

/** A group of shared files starts after this many files with a separate process. */
const ALONE_PER_GROUP = 2;

/**
 * Plans the processes for test files: slow files first, and among them groups of files that share a process. Groups use the
 * processor all the time, while other files wait for processes and browsers. Writes modules that import several files into
 * `folder`.
 */
export async function planJobs(
  files: readonly string[],
  { repository, folder }: { readonly repository: string; readonly folder: string },
): Promise<Job[]> {
  const ordered = files.toSorted((a, b) => rank(a) - rank(b) || a.localeCompare(b));
  const sources = new Map(
    await Promise.all(
      ordered.map(async (file) => [file, await Deno.readTextFile(join(repository, file))] as const),
    ),
  );
  const isShared = (file: string) =>
    !isBelow([...SLOW, ...ISOLATED, ...FROM_SOURCES], file) && !NOT_SHARED.test(sources.get(file) ?? "");
  const writeGroup = async (group: readonly string[], name: string): Promise<Job> => {
    const path = join(folder, `${dirname(group[0] ?? "").replaceAll("/", "_")}_${name}.ts`);
    const lines = group.map((file) =>
      `import ${JSON.stringify(pathToFileURL(join(repository, file)).href)};\n`
    );
    await Deno.writeTextFile(path, lines.join(""));
    return { name: `${group[0]} and ${group.length - 1} more`, module: path, fromSources: false };
  };
  const alone: Job[] = [];
  for (const file of ordered.filter((file) => !isShared(file))) {
    const group = GROUPS.find((group) => group.includes(file))?.filter((one) => files.includes(one));
    if (group === undefined) {
      alone.push({ name: file, module: file, fromSources: isBelow(FROM_SOURCES, file) });
    } else if (group[0] === file) alone.push(await writeGroup(group, `group_${alone.length}`));
  }
  const groups: Job[] = [];
  const shared = ordered.filter(isShared);
  const built = shared.filter((file) => isBelow(BUILD, file));
  for (const group of [built, ...groupsOf(shared.filter((file) => !built.includes(file)))]) {
    if (group.length === 0) continue;
    groups.push(await writeGroup(group, String(groups.length)));
  }
  const jobs: Job[] = [];
  for (const [at, job] of alone.entries()) {
    jobs.push(job);
    if (at % ALONE_PER_GROUP === ALONE_PER_GROUP - 1) jobs.push(...groups.splice(0, 1));
  }
  return [...jobs, ...groups];
}

/** Index in the list of slow files; other files are last. */
function rank(file: string): number {
  const at = SLOW.findIndex((path) => isBelow([path], file));
  return at === -1 ? SLOW.length : at;
}

function groupsOf(files: readonly string[]): string[][] {
  return Array.from(
    { length: Math.ceil(files.length / FILES_MAX) },
    (_, i) => files.slice(i * FILES_MAX, (i + 1) * FILES_MAX),
  );
}

/** Whether a file is one of these paths, or below one of them. */
function isBelow(paths: readonly string[], file: string): boolean {
  return paths.some((path) => file === path || file.startsWith(`${path}/`));
}
