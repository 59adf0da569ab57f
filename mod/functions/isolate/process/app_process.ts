/** The `process` object of app code, global or imported: enough for libraries that inspect it, without side effects. */
import { withHelp } from "../../../explained.ts";
import process from "node:process";

const { version, versions, platform, arch } = process;

const nothing = (): void => {};

/** Missing names reported, and reports per name. */
const NAMES_MAX = 100;
const TIMES_MAX = 3;

/** Creates a `process` with this environment. `onMissing` is called for missing variables until it returns `true`. */
export function appProcess(
  env: Readonly<Record<string, string>>,
  onMissing: (name: string) => boolean,
): Record<string, unknown> {
  const emitter: Record<string, unknown> = {};
  for (const name of ["on", "once", "off", "addListener", "removeListener", "removeAllListeners", "emit"]) {
    emitter[name] = () => emitter;
  }
  const refuse = (name: string) => () => {
    throw withHelp(new TypeError(`process.${name}() is not available to app code`), "package");
  };
  return Object.assign(emitter, {
    env: withReadReports({ ...env }, onMissing),
    argv: [],
    execArgv: [],
    pid: 1,
    platform,
    arch,
    version,
    versions: { ...versions },
    release: { name: "node" },
    title: "syncline",
    exitCode: undefined,
    nextTick: (callback: (...args: unknown[]) => void, ...args: unknown[]) =>
      queueMicrotask(() => callback(...args)),
    cwd: () => "/",
    emitWarning: nothing,
    umask: () => 0,
    exit: refuse("exit"),
    abort: refuse("abort"),
    kill: refuse("kill"),
    chdir: refuse("chdir"),
    getBuiltinModule: () => undefined,
    binding: refuse("binding"),
    dlopen: refuse("dlopen"),
  });
}

/** Reports reads of missing variables of an environment. */
export function withReadReports<Env extends Readonly<Record<string, string>>>(
  env: Env,
  onMissing: (name: string) => boolean,
): Env {
  const reads: Record<string, number> = Object.create(null);
  let names = 0;
  return new Proxy(env, {
    get(own, name) {
      const value = own[name as string];
      if (value !== undefined || typeof name !== "string") return value;
      const times = reads[name] ?? 0;
      if (times === 0 && names++ >= NAMES_MAX || times >= TIMES_MAX) return undefined;
      reads[name] = onMissing(name) ? TIMES_MAX : times + 1;
      return undefined;
    },
  });
}
