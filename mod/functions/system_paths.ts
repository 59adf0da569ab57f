/** Paths of functions of the service, told from those of the app. */

/** Whether a function path belongs to the service: no module of an app has a name that begins with `_`. */
export function isSystemPath(udfPath: string): boolean {
  return /^_[^:]*:/.test(udfPath);
}

/** Whether a function of the service stands behind `ctx` of the app's functions, who may call it: `_ctx/<feature>:<name>`. */
export function isCtxPath(udfPath: string): boolean {
  return udfPath.startsWith("_ctx/");
}
