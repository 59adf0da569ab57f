/** The machine's addresses, for the lines that a start prints: asked for once, behind which the right to ask is given up. */

/** None where they may not be asked for. */
export async function networkInterfaces(): Promise<Deno.NetworkInterfaceInfo[]> {
  try {
    return Deno.networkInterfaces();
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) return [];
    throw error;
  } finally {
    await Deno.permissions.revoke({ name: "sys", kind: "networkInterfaces" });
  }
}
