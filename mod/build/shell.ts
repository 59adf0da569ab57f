/** Runs build commands through `sh`, the only program the build permissions allow. */

/** Runs a script with `values` as `$1`, `$2`, ... and additional variables. Throws an error with its output on failure. */
export async function shell(
  script: string,
  values: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { success, stderr } = await new Deno.Command("sh", {
    args: ["-ec", script, "sh", ...values],
    env: { ...env, NO_COLOR: "1" },
  }).output();
  if (!success) throw new Error(`Cannot build: ${new TextDecoder().decode(stderr)}`);
}
