/** The loaded app: its functions, routes and crons, and its code version. */
import type { FunctionInfo } from "../../host_port.ts";
import { MainActions } from "../../main_actions.ts";
import type { Version, VersionStore } from "../../versions/version_store.ts";
import type { WireCron } from "../../wire/messages.ts";
import type { HostCode } from "../host_parts.ts";
import type { ServedApp } from "../leader_port.ts";
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
  /** Actions that main runs. They precede the functions of the app. */
  mainActions = new MainActions();

  /** `code`: absent if the code is not stored in versions. */
  constructor(code: HostCode | undefined) {
    this.#code = code;
    this.#version = code?.version ?? null;
  }

  /** Whether the app or the service has this function in isolates. */
  hasFunction(udfPath: string): boolean {
    return this.#functions.has(udfPath);
  }

  info(udfPath: string): FunctionInfo | undefined {
    return this.mainActions.info(udfPath) ?? this.#functions.get(udfPath);
  }

  get routes(): RouteTable {
    return this.#routes;
  }

  get crons(): readonly WireCron[] {
    return this.#crons;
  }

  /** The served version. `null` without versions. */
  get version(): Version | null {
    return this.#version;
  }

  /** The versions in the data folder. Throws without versions. */
  get versions(): VersionStore {
    if (this.#code === undefined) throw new Error("The code of these isolates is not stored in versions");
    return this.#code.versions;
  }

  /** The app, as described to other processes. Throws without versions. */
  get app(): ServedApp {
    if (this.#version === null) throw new Error("The code of these isolates is not stored in versions");
    const known = new Map([...this.#functions, ...this.mainActions.infos()]);
    return {
      version: this.#version.hash,
      functions: [...known],
      crons: this.#crons,
      routes: this.#routes.routes,
    };
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
    if (code?.temporary !== true) return;
    const { hash } = code.version;
    const known = (await code.versions.list()).find((version) => version.hash === hash);
    if (known?.servedAt === null) await code.versions.remove(hash);
  }
}
