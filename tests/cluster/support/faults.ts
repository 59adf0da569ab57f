/** Faults of a cluster: servers are killed, frozen, stopped or cut off, and recover. */
import { pause } from "../../support/waiting.ts";
import type { Clients } from "./clients.ts";
import type { TestPostgres } from "./postgres.ts";
import type { ClusterProcess, ProcessRig } from "./server_processes.ts";

export interface Scene {
  readonly rig: ProcessRig;
  readonly postgres: TestPostgres;
  readonly clients: Pick<Clients, "cutOff" | "reaches">;
  readonly leader: ClusterProcess;
  /** Returns a random integer below `end`. */
  readonly pick: (below: number) => number;
  readonly note: (line: string) => void;
}

export interface Fault {
  /** Whether another server leads afterwards. */
  readonly takesOver: boolean;
  /** Relative frequency. */
  readonly weight: number;
  /** Injects the fault. Resolves with a function that ends it. */
  readonly inflict: (scene: Scene) => Promise<() => Promise<void> | void>;
}

export const FAULTS = {
  kill: { takesOver: true, weight: 7, inflict: ({ leader }) => ended(leader, "SIGKILL") },
  freeze: {
    takesOver: true,
    weight: 4,
    inflict({ leader }) {
      leader.freeze();
      return Promise.resolve(() => leader.thaw());
    },
  },
  stop: { takesOver: true, weight: 4, inflict: ({ leader }) => ended(leader, "SIGTERM") },
  "no-database": {
    takesOver: true,
    weight: 3,
    inflict: (scene) => Promise.resolve(cutOff(scene, scene.leader, ["database"])),
  },
  "no-servers": {
    takesOver: true,
    weight: 1,
    inflict(scene) {
      const mend = cutOff(scene, scene.leader, ["servers"]);
      // Links without traffic are closed only after ten seconds.
      scene.leader.gates.servers.breakOff();
      return Promise.resolve(mend);
    },
  },
  together: {
    takesOver: true,
    weight: 2,
    async inflict(scene) {
      const follower = followerOf(scene);
      const mend = cutOff(scene, follower, ["clients", "servers", "database"]);
      const [start] = await Promise.all([ended(scene.leader, "SIGKILL"), restartDatabase(scene)]);
      return async () => {
        mend();
        await start();
      };
    },
  },
  "database-restarts": {
    takesOver: false,
    weight: 1,
    async inflict(scene) {
      await restartDatabase(scene);
      return () => {};
    },
  },
  "follower-cut-off": {
    takesOver: false,
    weight: 1,
    inflict: (scene) =>
      forAWhile(cutOff(scene, followerOf(scene), ["clients", "servers", "database"]), 12_000),
  },
  "no-clients": {
    takesOver: false,
    weight: 1,
    inflict: (scene) => forAWhile(cutOff(scene, scene.leader, ["clients"]), 4_000),
  },
  "links-break": {
    takesOver: false,
    weight: 1,
    async inflict({ leader, pick }) {
      // Immediately, or after it was kept from starting for a moment.
      const ms = pick(2) * 1_500;
      const { servers } = leader.gates;
      if (ms > 0) servers.shut();
      servers.breakOff();
      await pause(ms);
      return () => servers.open();
    },
  },
} as const satisfies Record<string, Fault>;

export type FaultName = keyof typeof FAULTS;

const names = Object.keys(FAULTS) as FaultName[];

/** The kinds of a schedule, by frequency. */
export function chosen(kinds: readonly FaultName[], takesOver: boolean): FaultName[] {
  return kinds.filter((name) => FAULTS[name].takesOver === takesOver)
    .flatMap((name) => Array<FaultName>(FAULTS[name].weight).fill(name));
}

/** Returns the named kinds, or all for an empty list. Throws for an unknown name. */
export function namedFaults(list: string): readonly FaultName[] {
  if (list === "") return names;
  return list.split(",").map((text) => {
    const name = names.find((known) => known === text.trim());
    if (name === undefined) throw new Error(`There is no fault "${text}"; there are ${names.join(", ")}`);
    return name;
  });
}

async function ended(server: ClusterProcess, signal: "SIGKILL" | "SIGTERM"): Promise<() => Promise<void>> {
  await server.end(signal);
  return () => server.start();
}

function followerOf({ rig, leader, pick }: Scene): ClusterProcess {
  const others = rig.servers.filter((server) => server !== leader);
  return others[pick(others.length)] ?? leader;
}

/** Cuts a server off, in some directions or for some connections. Returns a function that ends it. */
function cutOff(
  { clients, note }: Scene,
  server: ClusterProcess,
  gates: readonly (keyof ClusterProcess["gates"])[],
): () => void {
  note(`${server.name} is cut off: ${gates.join(", ")}`);
  if (gates.includes("database")) clients.cutOff(server);
  for (const gate of gates) server.gates[gate].shut();
  return () => {
    for (const gate of gates) server.gates[gate].open();
    if (gates.includes("database")) clients.reaches(server);
    note(`${server.name} is not cut off any more`);
  };
}

async function forAWhile(mend: () => void, ms: number): Promise<() => void> {
  await pause(ms);
  return mend;
}

async function restartDatabase({ postgres, rig, clients }: Scene): Promise<void> {
  for (const server of rig.servers) clients.cutOff(server);
  await postgres.down("immediate");
  await postgres.up();
  for (const server of rig.servers) clients.reaches(server);
}
