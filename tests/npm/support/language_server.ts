/** TypeScript's language server, used like an editor uses it. */
import { lines } from "../../support/processes/lines.ts";

export class LanguageServer implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #waiting = new Map<number, (body: unknown) => void>();
  readonly #reading: Promise<void>;
  #seq = 0;

  /** `folder`: a project with TypeScript installed. */
  constructor(folder: string) {
    this.#child = new Deno.Command("node", {
      args: ["node_modules/typescript/lib/tsserver.js", "--disableAutomaticTypingAcquisition"],
      cwd: folder,
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    this.#input = this.#child.stdin.getWriter();
    this.#reading = this.#read();
  }

  /** Opens a file with a text that need not be the one on the disk. */
  async open(file: string, text: string): Promise<void> {
    await this.#send("open", { file, fileContent: text });
  }

  /** Returns completions at a position in a file. The position is the end of the given text. */
  async completions(
    file: string,
    { text, behind }: { readonly text: string; readonly behind: string },
  ): Promise<string[]> {
    const body = await this.#ask("completionInfo", {
      file,
      ...place(text, text.indexOf(behind) + behind.length),
    });
    return (body as { entries: { name: string }[] }).entries.map(({ name }) => name);
  }

  /** Files in which a name is defined. */
  async definitions(
    file: string,
    { text, name }: { readonly text: string; readonly name: string },
  ): Promise<string[]> {
    const body = await this.#ask("definition", {
      file,
      ...place(text, text.indexOf(name) + name.length - 1),
    });
    return (body as { file: string }[]).map(({ file }) => file);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#send("exit", {});
    await this.#input.close().catch(() => {});
    await this.#child.status;
    await this.#reading;
  }

  async #ask(command: string, args: object): Promise<unknown> {
    const answered = Promise.withResolvers<unknown>();
    this.#waiting.set(this.#seq + 1, answered.resolve);
    await this.#send(command, args);
    return await answered.promise;
  }

  async #send(command: string, args: object): Promise<void> {
    const request = { seq: ++this.#seq, type: "request", command, arguments: args };
    await this.#input.write(new TextEncoder().encode(`${JSON.stringify(request)}\n`));
  }

  async #read(): Promise<void> {
    for await (const line of lines(this.#child.stdout)) {
      if (!line.startsWith("{")) continue;
      const message = JSON.parse(line) as { type: string; request_seq?: number; body?: unknown };
      if (message.type === "response") {
        this.#waiting.get(message.request_seq ?? 0)?.(message.body ?? { entries: [] });
      }
    }
  }
}

function place(text: string, at: number): { readonly line: number; readonly offset: number } {
  const before = text.slice(0, at).split("\n");
  return { line: before.length, offset: (before.at(-1)?.length ?? 0) + 1 };
}
