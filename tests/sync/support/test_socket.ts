/**
 * A socket of a test and the client behind it: sends messages, stores received frames, and checks the invariants of
 * each frame (schema, versions without gaps, applicable diffs).
 */
import assert from "node:assert/strict";
import { applyDiff } from "../../../mod/protocol/apply_diff.ts";
import type { QuerySetModification } from "../../../mod/protocol/client_messages.ts";
import {
  actionResponseSchema,
  authErrorSchema,
  fatalErrorSchema,
  mutationResponseSchema,
  pingSchema,
  roomChangedSchema,
  roomJoinedSchema,
  roomRefusedSchema,
  roomStateSchema,
  type ServerMessage,
  transitionSchema,
} from "../../../mod/protocol/server_messages.ts";
import { initialVersion, type StateVersion } from "../../../mod/protocol/state_version.ts";
import type { Channel, ReceiveWindow, SocketHandle } from "../../../mod/sync/sockets/socket.ts";
import type { Hub } from "../../../mod/sync/hub.ts";

type Of<Type extends ServerMessage["type"]> = Extract<ServerMessage, { type: Type }>;

const schemas = {
  Transition: transitionSchema,
  MutationResponse: mutationResponseSchema,
  ActionResponse: actionResponseSchema,
  FatalError: fatalErrorSchema,
  AuthError: authErrorSchema,
  RoomJoined: roomJoinedSchema,
  RoomState: roomStateSchema,
  RoomChanged: roomChangedSchema,
  RoomRefused: roomRefusedSchema,
  Ping: pingSchema,
} as const;

/** The client's state of a query: its value, or the message of its error. */
export type Known = { readonly value: unknown } | { readonly error: string };

export class TestSocket implements Channel {
  /** Everything received, in order. */
  readonly frames: ServerMessage[] = [];
  /** Characters received in all. */
  chars = 0;
  version: StateVersion = initialVersion;
  readonly results = new Map<number, Known>();
  closedWith: number | null = null;
  /** While set, sent data stays in the buffer. */
  stalled = false;
  bufferedAmount = 0;
  readonly acknowledgedBytes = null;
  wasCut = false;
  querySet = 0;
  readonly #handle: SocketHandle | null;
  #read = 0;

  constructor(hub: Hub) {
    this.#handle = hub.connect(this);
  }

  send(text: string): void {
    assert.equal(this.closedWith, null, "a frame after the close");
    if (this.stalled) this.bufferedAmount += text.length;
    this.chars += text.length;
    const parsed = JSON.parse(text) as { type: keyof typeof schemas };
    const message = schemas[parsed.type].parse(parsed) as ServerMessage;
    assert.deepEqual(message, parsed, "a frame with fields the schema does not know");
    this.frames.push(message);
    if (message.type === "Transition") this.#apply(message);
  }

  close(code: number): void {
    this.closedWith ??= code;
    this.#handle?.closed();
  }

  /** Receive window that the server allows this client. */
  receiveWindow: ReceiveWindow = "normal";

  setReceiveWindow(how: ReceiveWindow): void {
    this.receiveWindow = how;
  }

  /** The server cuts the connection. */
  cut(): void {
    this.wasCut = true;
    this.bufferedAmount = 0;
    this.drop();
  }

  /** Closes the client's side. */
  drop(code = 1006): void {
    this.closedWith ??= code;
    this.#handle?.closed(code);
  }

  /** The buffer empties. */
  drain(): void {
    this.stalled = false;
    this.bufferedAmount = 0;
  }

  raw(text: string): void {
    this.#handle?.receive(text);
  }

  binary(): void {
    this.#handle?.refuse("binary frame: every frame is JSON text", 1003);
  }

  report(message: unknown): void {
    this.raw(JSON.stringify(message));
  }

  connect(
    options: {
      sessionId?: string;
      features?: readonly string[];
      connectionCount?: number;
      maxObservedTs?: number;
    } = {},
  ): void {
    this.report({
      type: "Connect",
      sessionId: options.sessionId ?? "01890000-0000-7000-8000-000000000000",
      connectionCount: options.connectionCount ?? 0,
      lastCloseReason: null,
      clientVersion: "test",
      ...(options.features && { features: options.features }),
      ...(options.maxObservedTs !== undefined && { maxObservedTs: options.maxObservedTs }),
    });
  }

  modify(...modifications: QuerySetModification[]): void {
    this.report({
      type: "ModifyQuerySet",
      baseVersion: this.querySet,
      newVersion: ++this.querySet,
      modifications,
    });
  }

  add(queryId: number, udfPath: string, args: Record<string, unknown> = {}): void {
    this.modify({ type: "Add", queryId, udfPath, args });
  }

  remove(queryId: number): void {
    this.modify({ type: "Remove", queryId });
  }

  mutate(requestId: number, udfPath: string, args: Record<string, unknown> = {}): void {
    this.report({ type: "Mutation", requestId, udfPath, args });
  }

  act(requestId: number, udfPath: string, args: Record<string, unknown> = {}): void {
    this.report({ type: "Action", requestId, udfPath, args });
  }

  authenticate(baseVersion: number, token: string | null): void {
    this.report({ type: "Authenticate", baseVersion, token });
  }

  /** Frames received since the last call. */
  take(): ServerMessage[] {
    const taken = this.frames.slice(this.#read);
    this.#read = this.frames.length;
    return taken;
  }

  /** All frames of one type. */
  all<Type extends ServerMessage["type"]>(type: Type): Of<Type>[] {
    return this.frames.filter((frame): frame is Of<Type> => frame.type === type);
  }

  value(queryId: number): unknown {
    const known = this.results.get(queryId);
    assert.ok(
      known !== undefined && "value" in known,
      `query ${queryId} has no value: ${JSON.stringify(known)}`,
    );
    return known.value;
  }

  error(queryId: number): string {
    const known = this.results.get(queryId);
    assert.ok(
      known !== undefined && "error" in known,
      `query ${queryId} has no error: ${JSON.stringify(known)}`,
    );
    return known.error;
  }

  #apply({ startVersion, endVersion, modifications }: Of<"Transition">): void {
    assert.deepEqual(startVersion, this.version, "a Transition starts at the version the client has");
    assert.ok(endVersion.ts >= startVersion.ts, "ts went back");
    assert.ok(endVersion.querySet >= startVersion.querySet && endVersion.identity >= startVersion.identity);
    this.version = endVersion;
    const seen = new Set<string>();
    for (const item of modifications) {
      assert.ok(!seen.has(`${item.type}${item.queryId}`), "one query twice in one Transition");
      seen.add(`${item.type}${item.queryId}`);
      switch (item.type) {
        case "QueryUpdated": {
          assert.notEqual("value" in item, "diff" in item, "exactly one of value and diff");
          const known = this.results.get(item.queryId);
          if ("diff" in item) assert.ok(known !== undefined && "value" in known, "a diff without a base");
          const base = known !== undefined && "value" in known ? known.value : undefined;
          this.results.set(item.queryId, { value: "diff" in item ? applyDiff(base, item.diff) : item.value });
          break;
        }
        case "QueryFailed":
          this.results.set(item.queryId, { error: item.errorMessage });
          break;
        case "QueryRemoved":
          assert.ok(this.results.delete(item.queryId), "QueryRemoved of a query without a result");
          break;
        default:
          item satisfies never;
      }
    }
  }
}

/** Lets everything happen that does not wait for a timer. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve();
}
