/** Tries operations that a permission set may allow or deny, and prints the outcomes as JSON. */
import { statfs } from "node:fs/promises";
type Attempt = () => unknown | Promise<unknown>;

/** Not a literal, so that it is not loaded before the program runs. */
const webModule = (host: string) => ["https:", "", host, "module.ts"].join("/");

const attempts: Record<string, Attempt> = {
  "read a file": () => Deno.readTextFile(new URL(import.meta.url)),
  "write a file": async () => {
    const path = await Deno.makeTempFile();
    await Deno.remove(path);
  },
  "listen": () => Deno.listen({ port: 0, hostname: "127.0.0.1" }).close(),
  "start sh": () => new Deno.Command("sh", { args: ["-c", "true"] }).output(),
  "start itself": () => new Deno.Command(Deno.execPath(), { args: ["--version"] }).output(),
  "start another program": () => new Deno.Command("/bin/ls", { stdout: "null" }).output(),
  "read SYNCLINE_ variables": () => refuseIfHidden(Deno.env.get("SYNCLINE_PROBE")),
  "read PATH's neighbours": () => refuseIfHidden(Deno.env.get("AWS_SECRET_ACCESS_KEY")),
  "read the whole environment": () => refuseIfHidden(Deno.env.toObject()["AWS_SECRET_ACCESS_KEY"]),
  "load a native library": () => Deno.dlopen("libc.so.6", {}).close(),
  "ask for the machine's name": () => Deno.hostname(),
  "ask for the room on a disk": () => statfs("."),
  "ask for the machine's addresses": () => Deno.networkInterfaces(),
  "import from the web": () => import(webModule("example.com")),
  // Deno allows a few hosts unless a set names others.
  "import from a host Deno trusts": () => import(webModule("esm.sh")),
  // An address kept for documentation: where it is not refused, connecting to it never ends.
  "reach another machine": () =>
    Deno.permissions.query({ name: "net", host: "192.0.2.1:80" }).then(refuseUnlessGranted),
};

function refuseUnlessGranted({ state }: Deno.PermissionStatus): void {
  if (state !== "granted") throw new Deno.errors.NotCapable("not granted");
}

/** Sets can hide variables that are set instead of refusing to read them. */
function refuseIfHidden(value: string | undefined): void {
  if (value === undefined) throw new Deno.errors.NotCapable("hidden");
}

const outcomes: Record<string, string> = {};
for (const [name, attempt] of Object.entries(attempts)) {
  try {
    await attempt();
    outcomes[name] = "allowed";
  } catch (error) {
    // A module loader wraps the refusal into a TypeError.
    const refused = error instanceof Deno.errors.NotCapable ||
      /Requires (import|net) access/.test(String(error));
    outcomes[name] = refused ? "refused" : `failed: ${error}`;
  }
}
// deno-lint-ignore no-console -- the answer to the test that started this
console.log(JSON.stringify(outcomes));
