/** The app as it is loaded now: its functions, routes and crons, and the version of the code they come from. */
import type { FunctionInfo } from "../../host_port.ts";
import type { Version, VersionStore } from "../../versions/version_store.ts";
import type { WireCron } from "../../wire/messages.ts";
import type { HostCode } from "../host_parts.ts";
import type { Ready } from "../process/isolate.ts";
import { RouteTable } from "../runners/route_table.ts";

/** What an isolate says of the app that it has loaded. */
export type Declared = Pick<Ready, "functions" | "crons" | "routes">;

export class ServedCode {
  readonly #code: HostCode | undefined;
  #functions: ReadonlyMap<string, FunctionInfo> = new Map();
  #routes = new RouteTable([]);
  #crons: readonly WireCron[] = [];
  #version: Version | null;
  /** Keeps the version in the folder. */
  #held: Disposable | null = null;

  /** `code`: absent where the code is not kept in versions. */
  constructor(code: HostCode | undefined) {
    this.#code = code;
    this.#version = code?.version ?? null;
  }

  get functions(): ReadonlyMap<string, FunctionInfo> {
    return this.#functions;
  }

  get routes(): RouteTable {
    return this.#routes;
  }

  get crons(): readonly WireCron[] {
    return this.#crons;
  }

  /** `null` where there are none. */
  get version(): Version | null {
    return this.#version;
  }

  /** Throws where there are none. */
  get versions(): VersionStore {
    if (this.#code === undefined) throw new Error("The code of these isolates is not kept in versions");
    return this.#code.versions;
  }

  /** Takes note of what a new writer has loaded. */
  declare({ functions, crons = [], routes = [] }: Declared): void {
    this.#functions = new Map(functions);
    this.#crons = crons;
    this.#routes = new RouteTable(routes);
  }

  /** This version is the one that is loaded. */
  exchange(version: Version): void {
    this.#version = version;
  }

  /** Keeps this version in the folder, and no other any more. */
  async hold(version: Version): Promise<void> {
    const held = await this.versions.hold(version);
    this.#held?.[Symbol.dispose]();
    this.#held = held;
    this.#version = version;
  }

  /** Like {@linkcode hold}, and notes in the folder that it is served: old versions may go. */
  async serve(version: Version): Promise<void> {
    await this.hold(version);
    await this.versions.served(version);
  }

  /** Lets the version go; one that was of no use but to this server is removed. */
  async release(): Promise<void> {
    this.#held?.[Symbol.dispose]();
    const code = this.#code;
    if (code?.passing !== true) return;
    const { hash } = code.version;
    const known = (await code.versions.list()).find((version) => version.hash === hash);
    if (known?.servedAt === null) await code.versions.remove(hash);
  }
}
