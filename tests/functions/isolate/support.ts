/** Starts real isolates for tests: a small parent that speaks frames, and functions folders outside the repository. */
import { FrameSender, readFrames, type WireFrame } from "../../../mod/functions/wire/segment_frames.ts";
import { anonymous, type Identity } from "../../../mod/functions/identity.ts";
import type { Outcome } from "../../../mod/functions/outcome.ts";
import { type Version, VersionStore } from "../../../mod/functions/versions/version_store.ts";
import { isolateImportMap } from "../../../mod/functions/host/process/isolate_import_map.ts";
import { isolateCommand, plainEntry } from "../../../mod/functions/host/process/command.ts";
import { answerFromWire, fromWire } from "../../../mod/functions/host/outcomes.ts";
import type {
  Batch,
  Boot,
  BootAnswer,
  FromIsolate,
  Group,
  IsolateRole,
  QueryBatchAnswers,
  RunAction,
  SubAnswer,
  SubCall,
  ToIsolate,
  WireCall,
  WireMutation,
  WireOutcome,
} from "../../../mod/functions/wire/messages.ts";

/** Files of an app by name, such as `messages.ts`. */
export type AppFiles = Readonly<Record<string, string>>;

/** A folder with an app, a data folder and a folder for sockets. Removed when it is disposed. */
export class Workspace implements AsyncDisposable {
  readonly dir: string;
  readonly functionsDir: string;
  readonly dataDir: string;
  readonly progressDir: string;
  #isolates = 0;
  #versions: Promise<VersionStore> | null = null;

  constructor(files: AppFiles) {
    this.dir = Deno.makeTempDirSync({ prefix: "syncline-isolate-" });
    this.functionsDir = `${this.dir}/functions`;
    this.dataDir = `${this.dir}/data`;
    this.progressDir = `${this.dir}/progress`;
    for (const dir of [this.functionsDir, this.dataDir, this.progressDir]) Deno.mkdirSync(dir);
    this.write(files);
  }

  /** Adds or replaces files of the app. */
  write(files: AppFiles): void {
    for (const [name, text] of Object.entries(files)) {
      const path = `${this.functionsDir}/${name}`;
      Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true });
      Deno.writeTextFileSync(path, text);
    }
  }

  /** Adds or replaces files of packages, by their path below `node_modules` beside the functions. */
  install(files: AppFiles): void {
    for (const [name, text] of Object.entries(files)) this.write({ [`../node_modules/${name}`]: text });
  }

  /** The app in its current state, as isolates load it. */
  async version(): Promise<Version> {
    const versions = await (this.#versions ??= VersionStore.open(Deno.realPathSync(this.dataDir)));
    return await versions.make({ functionsDir: this.functionsDir });
  }

  /** Starts an isolate and boots it. */
  async start(
    role: IsolateRole,
    options: {
      readonly env?: Record<string, string>;
      readonly entry?: URL;
      readonly journal?: Boot["journal"];
    } = {},
  ): Promise<TestIsolate> {
    const { entry = plainEntry, journal } = options;
    const name = `${role}-${++this.#isolates}`;
    const socketPath = `${this.dir}/${name}.sock`;
    const progressPath = `${this.progressDir}/${name}`;
    using listener = Deno.listen({ transport: "unix", path: socketPath });
    Deno.writeFileSync(progressPath, new Uint8Array(16));
    const databasePath = `${this.dataDir}/data.db`;
    const version = await this.version();
    const { bundle, functions, authorFolder } = version;
    const importMapPath = `${this.progressDir}/${name}.m`;
    Deno.writeTextFileSync(importMapPath, isolateImportMap({ role, entry }));
    const { executable, args, env } = isolateCommand({
      role,
      entry,
      dataDir: this.dataDir,
      databasePath,
      bundle,
      socketPath,
      progressPath,
      actionNet: null,
      importMapPath,
    });
    const child = new Deno.Command(executable, {
      args: [...args],
      clearEnv: true,
      env: { ...env, SECRET_OF_THE_SERVER: "hidden" },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const conn = await Promise.race([listener.accept(), child.status]);
    if (!("read" in conn)) {
      throw new Error(`The isolate has ended: ${await new Response(child.stderr).text()}`);
    }
    const isolate = new TestIsolate(conn, { child, progressPath });
    await isolate.boot({
      type: "Boot",
      role,
      databasePath,
      bundle,
      functions,
      authorFolder,
      progressPath,
      env: options.env ?? {},
      ...(journal && { journal }),
    });
    return isolate;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.dir, { recursive: true });
  }
}

/** An answer, unpacked. */
export interface Answer {
  /** The result, parsed; `undefined` when the call failed. */
  readonly value: unknown;
  readonly outcome: Outcome;
  readonly logLines: readonly string[];
}

export interface QueryAnswer extends Answer {
  readonly details: QueryBatchAnswers["answers"][number];
}

export interface MutationAnswer extends Answer {
  readonly ts: number;
  readonly replayed: boolean;
}

/** A running isolate. */
export class TestIsolate implements AsyncDisposable {
  readonly child: Deno.ChildProcess;
  readonly progressPath: string;
  /** The answer to Boot. */
  booted: BootAnswer | null = null;
  readonly #conn: Deno.Conn;
  readonly #sender: FrameSender;
  readonly #frames: AsyncGenerator<WireFrame<FromIsolate>, void>;
  readonly #stderr: Promise<string>;
  #batches = 0;

  constructor(
    conn: Deno.Conn,
    options: { readonly child: Deno.ChildProcess; readonly progressPath: string },
  ) {
    this.#conn = conn;
    this.child = options.child;
    this.progressPath = options.progressPath;
    this.#sender = new FrameSender(conn);
    this.#frames = readFrames<FromIsolate>(conn);
    this.#stderr = new Response(options.child.stderr).text();
  }

  async boot(boot: Boot): Promise<void> {
    await this.send(boot);
    let { message } = await this.next();
    if (message.type === "Loaded") ({ message } = await this.next());
    if (message.type !== "Ready" && message.type !== "Broken") throw new Error(`Unexpected ${message.type}`);
    this.booted = message;
  }

  async send(message: ToIsolate, segments: readonly string[] = []): Promise<void> {
    await this.#sender.send(message, segments);
  }

  /** Returns the next frame. Throws with the isolate's output if it has ended. */
  async next(): Promise<WireFrame<FromIsolate>> {
    const { value, done } = await this.#frames.next();
    if (done || value === undefined) throw new Error(`The isolate has ended: ${await this.#stderr}`);
    return value;
  }

  /** Runs queries as one batch. */
  async queryBatch(
    queries: readonly WireCall[],
  ): Promise<{ readonly ts: number; readonly answers: QueryAnswer[] }> {
    const batch = ++this.#batches;
    await this.send({ type: "RunQueryBatch", batch, queries });
    const pinned = (await this.next()).message;
    if (pinned.type !== "Pinned") throw new Error(`Unexpected ${pinned.type}`);
    const answers: QueryAnswer[] = [];
    for (let last = false; !last;) {
      const { message, segments } = await this.next();
      if (message.type !== "QueryBatchAnswers" || message.from !== answers.length) {
        throw new Error("Unexpected frame");
      }
      for (const details of message.answers) answers.push({ ...unpack(details.outcome, segments), details });
      last = message.last;
    }
    return { ts: pinned.ts, answers };
  }

  /** Runs one query. */
  async query(
    udfPath: string,
    args: Record<string, unknown> = {},
    rest: Partial<WireCall> = {},
  ): Promise<QueryAnswer> {
    const { answers } = await this.queryBatch([call(udfPath, args, rest)]);
    const [answer] = answers;
    if (answer === undefined) throw new Error("No answer");
    return answer;
  }

  /** Runs mutations as one batch. Also returns the groups in order. */
  async batch(
    calls: readonly WireMutation[],
  ): Promise<{ readonly answers: MutationAnswer[]; readonly groups: Group[] }> {
    const answers: MutationAnswer[] = [];
    const groups: Group[] = [];
    // Calls that a slow batch returns are part of another one, as in main.
    while (answers.length < calls.length) {
      const before = answers.length;
      await this.#batch(calls.slice(before), {
        onAnswer: (answer) => answers.push(answer),
        onGroup: (group) => groups.push({ ...group, from: group.from + before }),
      });
    }
    return { answers, groups };
  }

  /** Resolves when all calls are answered, or the writer returns the rest. */
  async #batch(
    calls: readonly WireMutation[],
    { onAnswer, onGroup }: {
      readonly onAnswer: (answer: MutationAnswer) => void;
      readonly onGroup: (group: Group) => void;
    },
  ): Promise<void> {
    const batch = `test-${++this.#batches}`;
    await this.send({ type: "Batch", batch, calls } satisfies Batch);
    let answered = 0;
    let reported = false;
    while (answered < calls.length) {
      const { message, segments } = await this.next();
      // Said once, before the last group.
      if (message.type === "Committing" && message.batch === batch && !reported) {
        reported = true;
        continue;
      }
      if (message.type !== "Group" || message.batch !== batch || message.from !== answered) {
        throw new Error("Unexpected frame");
      }
      onGroup(message);
      answered += message.answers.length;
      const last = answered === calls.length;
      if (reported !== (last && message.answers.length > 1)) {
        throw new Error("Committing came at another time");
      }
      for (const answer of message.answers) {
        const { outcome, ts, replayed } = answerFromWire(answer, segments);
        onAnswer({ ...asAnswer(outcome), ts, replayed });
      }
      if (message.ends) return;
    }
  }

  /** Runs one mutation. */
  async mutate(
    udfPath: string,
    args: Record<string, unknown> = {},
    rest: Partial<WireMutation> = {},
  ): Promise<MutationAnswer> {
    const { answers } = await this.batch([{ ...call(udfPath, args, rest), ...rest }]);
    const [answer] = answers;
    if (answer === undefined) throw new Error("No answer");
    return answer;
  }

  /** Runs one action; its calls are answered by `answer`. */
  async act(
    udfPath: string,
    args: Record<string, unknown> = {},
    options: {
      readonly call?: Partial<WireCall>;
      readonly answer?: (
        sub: SubCall,
      ) => { readonly outcome: WireOutcome; readonly segments?: readonly string[] };
    } = {},
  ): Promise<Answer> {
    const number = ++this.#batches;
    await this.send(
      {
        type: "RunAction",
        call: number,
        order: number,
        ...call(udfPath, args, options.call),
      } satisfies RunAction,
    );
    for (;;) {
      const { message, segments } = await this.next();
      if (message.type === "ActionDone" && message.call === number) return unpack(message.outcome, segments);
      if (message.type !== "SubCall" || options.answer === undefined) {
        throw new Error(`Unexpected ${message.type}`);
      }
      const { outcome, segments: values = [] } = options.answer(message);
      await this.send(
        { type: "SubAnswer", call: number, sub: message.sub, outcome } satisfies SubAnswer,
        values,
      );
    }
  }

  /** Waits until the process has exited. */
  async ended(): Promise<{ readonly code: number; readonly stderr: string }> {
    const { code } = await this.child.status;
    return { code, stderr: await this.#stderr };
  }

  /** Closes the socket and waits until the process has ended. */
  async close(): Promise<{ readonly code: number; readonly stderr: string }> {
    try {
      this.#conn.close();
    } catch (error) {
      if (!(error instanceof Deno.errors.BadResource)) throw error;
    }
    const { code } = await this.child.status;
    return { code, stderr: await this.#stderr };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** A client's call, anonymous by default. */
export function call(
  udfPath: string,
  args: Record<string, unknown> = {},
  rest: Partial<WireCall> = {},
): WireCall {
  return { udfPath, args, identity: anonymous, origin: "client", ...rest };
}

/** A signed-in user. */
export function user(userId: string, sessionId = `session-of-${userId}`): Identity {
  return { principal: `user:${userId}`, userId, adminId: null, sessionId };
}

function unpack(wire: WireOutcome, segments: readonly string[]): Answer {
  return asAnswer(fromWire(wire, segments));
}

function asAnswer(outcome: Outcome): Answer {
  const value: unknown = outcome.ok ? JSON.parse(outcome.value) : undefined;
  return { value, outcome, logLines: outcome.logLines };
}

/** The error of an answer that must have failed. */
export function errorOf(answer: Answer): { kind: string; message: string; data: unknown; stack?: string } {
  if (answer.outcome.ok) throw new Error(`The call succeeded with ${answer.outcome.value}`);
  return answer.outcome.error;
}
