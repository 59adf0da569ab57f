/** Driver of `syncline conformance` for the JavaScript client. */
import { ConnectionLostError, FunctionError, SynclineClient } from "../../../mod/client/mod.ts";

interface Command {
  readonly do: string;
  readonly id: string;
  readonly path: string;
  readonly args: Record<string, never>;
  readonly token: string | null;
}

const client = new SynclineClient(Deno.env.get("SYNCLINE_URL") ?? "", {
  polling: false,
  webSocket: WebSocket,
});
const ends = new Map<string, () => void>();
let takeToken: ((token: string | null) => void) | null = null;

function emit(event: object): void {
  // deno-lint-ignore no-console -- the driver's output
  console.log(JSON.stringify(event));
}

function failure(error: unknown): object {
  if (error instanceof ConnectionLostError) return { message: error.message, code: null };
  if (!(error instanceof FunctionError)) throw error;
  return { message: error.message, code: error.code ?? null };
}

function call(id: string, result: Promise<unknown>): void {
  result.then(
    (value) => emit({ event: "response", id, value }),
    (error) => emit({ event: "error", id, ...failure(error) }),
  );
}

const commands: Readonly<Record<string, (command: Command) => void>> = {
  subscribe({ id, path, args }) {
    const end = client.subscribe(
      path,
      args,
      (value) => emit({ event: "result", id, value }),
      (error) => emit({ event: "failed", id, ...failure(error) }),
    );
    ends.set(id, end);
  },
  unsubscribe: ({ id }) => ends.get(id)?.(),
  mutation: ({ id, path, args }) => call(id, client.mutation(path, args)),
  action: ({ id, path, args }) => call(id, client.action(path, args)),
  signIn() {
    client.setAuth(() => {
      emit({ event: "token" });
      return new Promise((resolve) => takeToken = resolve);
    });
  },
  token: ({ token }) => takeToken?.(token),
};

let rest = "";
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + text).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) {
    const command = JSON.parse(line) as Command;
    commands[command.do]?.(command);
  }
}
client.close();
