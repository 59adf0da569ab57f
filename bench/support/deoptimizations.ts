/** Counts, from V8's log, how often a server and its isolates discard the compiled code of a function. Linux only. */
import { join } from "node:path";
import { projectDir } from "../../tests/support/processes/child.ts";
import { childrenOf, commandLine } from "../../tests/support/processes/process_tree.ts";

/** A function of ours whose code was thrown away in a process. */
export interface Deoptimization {
  /** `main`, `writer`, or `reader-n`. */
  readonly process: string;
  /** Its name and where it is. */
  readonly name: string;
  readonly times: number;
  /** Why, with how often. */
  readonly reasons: Readonly<Record<string, number>>;
}

const decoder = new TextDecoder();

/** Command that starts a server whose isolates log to a folder. */
export async function logged(folder: string): Promise<readonly string[]> {
  const { stdout } = await new Deno.Command("sh", { args: ["-c", "command -v setpriv"] }).output();
  const setpriv = decoder.decode(stdout).trim();
  if (setpriv === "") throw new Error("There is no setpriv, which starts the isolates");
  const flags = `--log-code,--log-deopt,--logfile=${join(folder, "v8-%p.log")}`;
  const script = `#!/bin/sh
[ "$3" = true ] || export DENO_V8_FLAGS="$DENO_V8_FLAGS,${flags}"
exec ${setpriv} "$@"
`;
  await Deno.writeTextFile(join(folder, "setpriv"), script, { mode: 0o755 });
  return ["env", `PATH=${folder}:${Deno.env.get("PATH") ?? ""}`, `DENO_V8_FLAGS=${flags}`];
}

/** Main, writer and readers of a server that runs, by their ids. */
export async function rolesOf(serverPid: number): Promise<ReadonlyMap<number, string>> {
  const roles = new Map([[serverPid, "main"]]);
  for (const pid of await childrenOf(serverPid)) {
    const role = /\/((?:writer|reader)-\d+)$/.exec(await commandLine(pid) ?? "")?.[1];
    if (role !== undefined) roles.set(pid, role.startsWith("writer") ? "writer" : role);
  }
  return roles;
}

/** Reads the log of a server that has ended. Those thrown away most come first. */
export function deoptimizations(folder: string, roles: ReadonlyMap<number, string>): Deoptimization[] {
  const all: Deoptimization[] = [];
  for (const { name } of Deno.readDirSync(folder)) {
    const process = roles.get(Number(/-v8-(\d+)\.log$/.exec(name)?.[1]));
    if (process !== undefined) all.push(...ofLog(Deno.readTextFileSync(join(folder, name)), process));
  }
  return all.toSorted((a, b) => b.times - a.times);
}

/** Code for a loop that runs is left for better code: nothing is lost. */
const BETTER = "prepare for on stack replacement (OSR)";

/** Counts in one log of V8: an entry for new code has its address and name, an entry for discarded code the address only. */
export function ofLog(text: string, process: string): Deoptimization[] {
  const names = new Map<string, string>();
  const counts = new Map<string, Record<string, number>>();
  for (const line of text.split("\n")) {
    const fields = line.split(",");
    if (fields[0] === "code-creation" && fields[1] === "JS") {
      names.set(fields[4] ?? "", fields[6] ?? "");
    } else if (fields[0] === "code-deopt") {
      const name = names.get(fields[3] ?? "") ?? "";
      const reason = fields.slice(8).join(",");
      if (reason === BETTER || !isOurs(name)) continue;
      const reasons = counts.get(name) ?? {};
      const why = `${reason} ${fields[7]}`;
      reasons[why] = (reasons[why] ?? 0) + 1;
      counts.set(name, reasons);
    }
  }
  return [...counts].map(([name, reasons]) => {
    const times = Object.values(reasons).reduce((sum, count) => sum + count, 0);
    return { process, name: name.replaceAll(/file:\/\/\S*\/(?=mod\/|functions\/)/g, ""), times, reasons };
  });
}

function isOurs(name: string): boolean {
  return name.includes(`file://${projectDir}mod/`);
}
