/** What app code gets as `process`, global or imported: enough for libraries that look at it, nothing that acts. */
import process from "node:process";

const { version, versions, platform, arch } = process;

const nothing = (): void => {};

/** A `process` with this environment. */
export function appProcess(env: Readonly<Record<string, string>>): Record<string, unknown> {
  const emitter: Record<string, unknown> = {};
  for (const name of ["on", "once", "off", "addListener", "removeListener", "removeAllListeners", "emit"]) {
    emitter[name] = () => emitter;
  }
  const refuse = (name: string) => () => {
    throw new TypeError(`process.${name}() is not available to app code`);
  };
  return Object.assign(emitter, {
    env: { ...env },
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
