/** Recognizes paths of service functions. */

/** Whether a path belongs to the service: no app module has a name that begins with `_`. */
export function isSystemPath(udfPath: string): boolean {
  return /^_[^:]*:/.test(udfPath);
}

/** Whether a service function is behind `ctx`, hence callable by the app: `_ctx/<feature>:<name>`. */
export function isCtxPath(udfPath: string): boolean {
  return udfPath.startsWith("_ctx/");
}
