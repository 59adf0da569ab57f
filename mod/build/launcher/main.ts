/** The launcher of the compiled program: unpacks and starts the server, forwards signals. Compiled without imports. */

/** Located next to this module, both in the program and in the folder it is compiled from. */
const PAYLOAD = new URL("./payload/", import.meta.url);
const SIGNAL_NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;

type StopSignal = keyof typeof SIGNAL_NUMBERS;

/** Ends the server when this process is gone and its input closes. Ignores signals sent to the process group. */
const GUARD = `trap '' HUP INT TERM; read -r _ || kill -TERM "$0"`;

/** The first signal received, and the child that receives forwarded signals. Set by the listeners and `started`. */
const state: { asked: StopSignal | null; child: Deno.ChildProcess | null } = { asked: null, child: null };

for (const signal of Object.keys(SIGNAL_NUMBERS) as StopSignal[]) {
  Deno.addSignalListener(signal, () => {
    state.asked ??= signal;
    if (state.child !== null) kill(state.child, signal);
  });
}

Deno.exit(await launch());

/** Returns the exit code. */
async function launch(): Promise<number> {
  const unpacking = await unpack();
  if (state.asked !== null) return 128 + SIGNAL_NUMBERS[state.asked];
  if (unpacking.code !== 0) return unpacking.code;
  const server = started({
    args: ["-c", await script("start.sh"), Deno.execPath(), unpacking.folder, ...Deno.args],
  });
  const guard = new Deno.Command("sh", {
    args: ["-c", GUARD, String(server.pid)],
    stdin: "piped",
    stdout: "null",
    stderr: "null",
  }).spawn();
  const { code } = await server.status;
  // Forward it before the input closes: afterwards the process id may belong to another process.
  kill(guard, "SIGKILL");
  return code;
}

async function unpack(): Promise<{ readonly code: number; readonly folder: string }> {
  const child = started({
    args: ["-c", await script("unpack.sh"), Deno.execPath()],
    stdin: "piped",
    stdout: "piped",
  });
  const archive = await Deno.open(new URL("archive", PAYLOAD));
  const [{ code }, folder] = await Promise.all([
    child.status,
    new Response(child.stdout).text(),
    // The script closes its input when it has enough, and reports an incomplete archive itself.
    archive.readable.pipeTo(child.stdin).catch(() => {}),
  ]);
  return { code, folder };
}

function started(options: Deno.CommandOptions & { readonly args: string[] }): Deno.ChildProcess {
  return state.child = new Deno.Command("sh", options).spawn();
}

function script(name: string): Promise<string> {
  return Deno.readTextFile(new URL(name, PAYLOAD));
}

function kill(child: Deno.ChildProcess, signal: Deno.Signal): void {
  try {
    child.kill(signal);
  } catch {
    // The child has already exited.
  }
}
