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
  /** A whole number below this one. */
  readonly pick: (below: number) => number;
  readonly note: (line: string) => void;
}

export interface Fault {
  /** Whether another server leads behind it. */
  readonly takesOver: boolean;
  /** How often it is among the others. */
  readonly weight: number;
  /** Has it happen. Resolves with what ends it. */
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
      // At once: links on which nothing comes any more are given up after ten seconds.
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
      // At once, or kept from coming back for a moment.
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

/** Those among which a schedule chooses, as often as they weigh. */
export function chosen(kinds: readonly FaultName[], takesOver: boolean): FaultName[] {
  return kinds.filter((name) => FAULTS[name].takesOver === takesOver)
    .flatMap((name) => Array<FaultName>(FAULTS[name].weight).fill(name));
}

/** The kinds that a list names; all where it is empty. Throws for one that there is not. */
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

/** From now on a server is not reached, or reaches nobody, on some of its ways. Gives what ends that. */
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
