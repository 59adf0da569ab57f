/** Logged arguments of runs. They are JSON that may be cut, with redacted parts. */

/** Parses logged arguments. Returns `undefined` if they were cut. */
export function parsedArgs(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Whether logged arguments are complete. */
export function isWhole(args: string): boolean {
  return parsedArgs(args) !== undefined && !args.includes('"(redacted)"');
}
