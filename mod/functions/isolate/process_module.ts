/** `node:process` for app code: the names of the global `process`, which lockdown.ts has put in place by then. */

const current = (globalThis as unknown as { readonly process: Record<string, unknown> }).process;

export default current;
export const env = current["env"];
export const argv = current["argv"];
export const platform = current["platform"];
export const arch = current["arch"];
export const version = current["version"];
export const versions = current["versions"];
export const pid = current["pid"];
export const nextTick = current["nextTick"];
export const cwd = current["cwd"];
export const exit = current["exit"];
export const emitWarning = current["emitWarning"];
export const on = current["on"];
export const once = current["once"];
export const off = current["off"];
