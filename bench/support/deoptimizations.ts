/** Counts how often V8 discards the compiled code of functions in a server and its isolates. Linux only. */
import { join } from "node:path";
import { projectDir } from "../../tests/support/processes/child.ts";
import { childrenOf, commandLine } from "../../tests/support/processes/process_tree.ts";

/** Deoptimizations of a function in a process. */
export interface Deoptimization {
  /** `main`, `writer`, or `reader-n`. */
  readonly process: string;
  /** Name and source position of the function. */
  readonly name: string;
  readonly count: number;
  /** Number of deoptimizations by reason. */
  readonly reasons: Readonly<Record<string, number>>;
}

const decoder = new TextDecoder();

/** Returns the prefix of a command whose isolates write V8 logs to a folder. */
export async function loggingStarter(folder: string): Promise<readonly string[]> {
  const { stdout } = await new Deno.Command("sh", { args: ["-c", "command -v setpriv"] }).output();
  const setpriv = decoder.decode(stdout).trim();
  if (setpriv === "") throw new Error("Cannot find setpriv, which starts the isolates");
  const flags = `--log-code,--log-deopt,--logfile=${join(folder, "v8-%p.log")}`;
  const script = `#!/bin/sh
[ "$3" = true ] || export DENO_V8_FLAGS="$DENO_V8_FLAGS,${flags}"
exec ${setpriv} "$@"
`;
  await Deno.writeTextFile(join(folder, "setpriv"), script, { mode: 0o755 });
  return ["env", `PATH=${folder}:${Deno.env.get("PATH") ?? ""}`, `DENO_V8_FLAGS=${flags}`];
}

/** Returns the roles of the processes of a running server, by process id. */
export async function rolesOf(serverPid: number): Promise<ReadonlyMap<number, string>> {
  const roles = new Map([[serverPid, "main"]]);
  for (const pid of await childrenOf(serverPid)) {
    const role = /\/((?:writer|reader)-\d+)$/.exec(await commandLine(pid) ?? "")?.[1];
    if (role !== undefined) roles.set(pid, role.startsWith("writer") ? "writer" : role);
  }
  return roles;
}

/** Reads the logs of a stopped server. Returns the most frequent deoptimizations first. */
export function readDeoptimizations(folder: string, roles: ReadonlyMap<number, string>): Deoptimization[] {
  const all: Deoptimization[] = [];
  for (const { name } of Deno.readDirSync(folder)) {
    const process = roles.get(Number(/-v8-(\d+)\.log$/.exec(name)?.[1]));
    if (process !== undefined) all.push(...parseLog(Deno.readTextFileSync(join(folder, name)), process));
  }
  return all.toSorted((a, b) => b.count - a.count);
}

/** V8 replaces the code of a running loop with better code. */
const REPLACED_BY_BETTER_CODE = "prepare for on stack replacement (OSR)";

/** An entry for new code has its address and name. An entry for discarded code has only the address. */
function parseLog(text: string, process: string): Deoptimization[] {
  const names = new Map<string, string>();
  const reasonsByName = new Map<string, Record<string, number>>();
  for (const line of text.split("\n")) {
    const fields = line.split(",");
    if (fields[0] === "code-creation" && fields[1] === "JS") {
      names.set(fields[4] ?? "", fields[6] ?? "");
    } else if (fields[0] === "code-deopt") {
      const name = names.get(fields[3] ?? "") ?? "";
      const kind = fields.slice(8).join(",");
      if (kind === REPLACED_BY_BETTER_CODE || !name.includes(`file://${projectDir}mod/`)) continue;
      const reasons = reasonsByName.get(name) ?? {};
      const reason = `${kind} ${fields[7]}`;
      reasons[reason] = (reasons[reason] ?? 0) + 1;
      reasonsByName.set(name, reasons);
    }
  }
  return [...reasonsByName].map(([name, reasons]) => ({
    process,
    name: name.replaceAll(/file:\/\/\S*\/(?=mod\/|functions\/)/g, ""),
    count: Object.values(reasons).reduce((sum, count) => sum + count, 0),
    reasons,
  }));
}
