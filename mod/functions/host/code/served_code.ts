/** The loaded app: its functions, routes and crons, and its code version. */
import type { FunctionInfo } from "../../host_port.ts";
import type { Version, VersionStore } from "../../versions/version_store.ts";
import type { WireCron } from "../../wire/messages.ts";
import type { HostCode } from "../host_parts.ts";
import type { Ready } from "../process/isolate.ts";
import { RouteTable } from "../runners/route_table.ts";

/** An isolate's description of the app it loaded. */
export type Declared = Pick<Ready, "functions" | "crons" | "routes">;

export class ServedCode {
  readonly #code: HostCode | undefined;
  #functions: ReadonlyMap<string, FunctionInfo> = new Map();
  #routes = new RouteTable([]);
  #crons: readonly WireCron[] = [];
  #version: Version | null;
  /** Locks the version against removal. */
  #held: Disposable | null = null;

  /** `code`: absent if the code is not stored in versions. */
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

  /** `null` without versions. */
  get version(): Version | null {
    return this.#version;
  }

  /** Throws without versions. */
  get versions(): VersionStore {
    if (this.#code === undefined) throw new Error("The code of these isolates is not kept in versions");
    return this.#code.versions;
  }

  /** Records what a new writer has loaded. */
  declare({ functions, crons = [], routes = [] }: Declared): void {
    this.#functions = new Map(functions);
    this.#crons = crons;
    this.#routes = new RouteTable(routes);
  }

  /** Records the loaded version. */
  exchange(version: Version): void {
    this.#version = version;
  }

  /** Locks this version against removal, and releases the previous one. */
  async hold(version: Version): Promise<void> {
    const held = await this.versions.hold(version);
    this.#held?.[Symbol.dispose]();
    this.#held = held;
    this.#version = version;
  }

  /** Like {@linkcode hold}, and records it as served, so that old versions may be removed. */
  async serve(version: Version): Promise<void> {
    await this.hold(version);
    await this.versions.served(version);
  }

  /** Releases the version. Removes it if only this server needed it. */
  async release(): Promise<void> {
    this.#held?.[Symbol.dispose]();
    const code = this.#code;
    if (code?.passing !== true) return;
    const { hash } = code.version;
    const known = (await code.versions.list()).find((version) => version.hash === hash);
    if (known?.servedAt === null) await code.versions.remove(hash);
  }
}
