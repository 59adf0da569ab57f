/** Programs that a build starts, through the one its permissions name. */

/** Runs a script with values as `$1` and on, and variables beside those of this process. Throws with what it said when it fails. */
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
