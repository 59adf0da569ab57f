/** Output of the benchmarks and their child processes, and formats for it. */

const encoder = new TextEncoder();

/** Writes a line to standard output. */
export function print(text: string): void {
  const bytes = encoder.encode(`${text}\n`);
  for (let sent = 0; sent < bytes.length;) sent += Deno.stdout.writeSync(bytes.subarray(sent));
}

/** Formats a number of bytes as megabytes: `12 MB`. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(0)} MB`;
}
