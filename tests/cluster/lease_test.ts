/** A leader that is cut off from the database or from everything else: its own work ends, and another server leads. */
import assert from "node:assert/strict";
import { parsePostgresUrl } from "../../mod/cluster/postgres/postgres_address.ts";
import type { Client } from "../../mod/cluster/postgres/driver.d.ts";
import type { TestServer } from "../auth/server/test_server.ts";
import { pause, until } from "../support/waiting.ts";
import { Gate } from "./support/gate.ts";
import { needs, postgres } from "../support/services.ts";
import { TestPostgres } from "./support/postgres.ts";
import { add, changeLease, ClusterRig, LEASE_MS, LONG_LEASE_MS, notes } from "./support/servers.ts";
import { freePort } from "../support/ports.ts";

/** Counts requests by path. */
class Counter implements AsyncDisposable {
  readonly #counts = new Map<string, number>();
  readonly #server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, ({ url }) => {
    const { pathname } = new URL(url);
    this.#counts.set(pathname, this.of(pathname) + 1);
    return new Response("counted");
  });

  of(path: string): number {
    return this.#counts.get(path) ?? 0;
  }

  at(path: string): string {
    return `http://127.0.0.1:${this.#server.addr.port}${path}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

/** Measures the longest time in which this process or PostgreSQL did not run. */
class Stalls implements AsyncDisposable {
  readonly #client: Client;
  readonly #work: Promise<void>;
  #longestMs = 0;
  #closed = false;

  constructor(client: Client) {
    this.#client = client;
    this.#work = this.#run();
  }

  /** Whether a leader may have lost its lease for that reason: it did not renew it in time. */
  get mayEndLease(): boolean {
    return this.#longestMs > LEASE_MS / 4;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await this.#work;
    await this.#client.end();
  }

  async #run(): Promise<void> {
    for (let before = performance.now(); !this.#closed;) {
      await pause(20);
      await this.#client.query("select 1");
      const now = performance.now();
      this.#longestMs = Math.max(this.#longestMs, now - before);
      before = now;
    }
  }
}

async function role(server: TestServer): Promise<string | null> {
  const response = await fetch(`${server.url}/api/health/ready`);
  return (await response.json()).cluster?.role ?? null;
}

Deno.test(needs(postgres, "a leader that is cut off"), async (t) => {
  await using postgres = await TestPostgres.start();
  await using counter = new Counter();
  await using database = new Gate(postgres.port);
  const linkPort = freePort();
  await using links = new Gate(linkPort);
  await using rig = await ClusterRig.make(await postgres.database());
  await using open = new AsyncDisposableStack();
  const { host } = parsePostgresUrl(rig.url);
  const cluster = rig.config();
  const a = open.use(
    await rig.first("a", { cluster: { ...cluster, database: { ...cluster.database, port: database.port } } }),
  );
  const b = open.use(
    await rig.start("b", {
      cluster: { ...cluster, address: { host, port: links.port }, listen: { host, port: linkPort } },
    }),
  );
  const steps = {
    step: async (name: string, run: () => Promise<void>) => assert.ok(await t.step(name, run), name),
  };

  const databaseName = new URL(rig.url).pathname.slice(1);
  const client = await postgres.client(databaseName);
  open.defer(() => client.end());
  /** Makes the first server the leader, if it is not. */
  const lead = async () => {
    if (await role(a) !== "leader") await b.restart(() => until(async () => await role(a) === "leader"));
    await until(async () => await role(b) === "follower");
  };
  /** Runs a check during which the first server must remain the leader, with a short lease. */
  const remainsLeader = async (check: (stalls: Stalls) => Promise<void>) => {
    await lead();
    const begins = () =>
      a.logged.filter((line) => line === "info This server is the leader of its cluster").length;
    const before = begins();
    await using stalls = new Stalls(await postgres.client(databaseName));
    await changeLease(LEASE_MS);
    await check(stalls);
    const [now, roles] = [begins(), [await role(a), await role(b)]];
    if (!stalls.mayEndLease) assert.deepEqual([now, roles], [before, ["leader", "follower"]]);
    await changeLease(LONG_LEASE_MS);
  };

  await steps.step(
    "[PG22] by slow responses only continues to lead, and so do scheduled actions",
    async () => {
      const args = { url: counter.at("/kept") };
      assert.equal((await a.post("/api/mutation", { path: "notes:pingSoon", args })).body.status, "success");
      await until(() => counter.of("/kept") > 3, { what: "the action runs" });
      await remainsLeader(async (stalls) => {
        await client.query("begin");
        await client.query("lock table syncline.snapshots in access exclusive mode");
        const timedOut = () => a.logged.includes("warn No snapshot could be made for the cluster");
        await until(async () => timedOut() || await role(b) === "leader", {
          what: "the statement timed out",
        });
        await client.query("rollback");
        const before = counter.of("/kept");
        await until(() => counter.of("/kept") > before + 3 || stalls.mayEndLease, {
          what: "the action continues",
        });
      });
    },
  );

  await steps.step("[PG22] by one of its connections opens another one, and nothing is lost", async () => {
    await remainsLeader(async (stalls) => {
      for (const use of ["syncline lease", "syncline rows", "syncline"]) {
        const { rows } = await client.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1",
          [use],
        );
        assert.ok(rows.length > 0, use);
        const text = `behind ${use}`;
        const { body } = await a.post("/api/mutation", { path: "notes:add", args: { text } });
        if (stalls.mayEndLease) return;
        assert.equal(body.status, "success", JSON.stringify(body));
        await until(async () => (await notes(b)).includes(text));
      }
    });
  });

  await steps.step(
    "[PG9] from the database ends the scheduled work before another server leads, and no other calls",
    async () => {
      await lead();
      const scheduled = await a.post("/api/mutation", {
        path: "notes:pingSoon",
        args: { url: counter.at("/scheduled") },
      });
      assert.equal(scheduled.body.status, "success", JSON.stringify(scheduled.body));
      // It is cut off when its server becomes a follower.
      const called = a.post("/api/action", { path: "notes:ping", args: { url: counter.at("/called") } })
        .catch(() => {});
      await until(() => counter.of("/scheduled") > 3 && counter.of("/called") > 3, { what: "both run" });
      await changeLease(LEASE_MS);
      database.shut();
      await until(async () => await role(b) === "leader", { what: "the other server leads" });
      await changeLease(LONG_LEASE_MS);
      const left = counter.of("/scheduled");
      const before = counter.of("/called");
      await until(() => counter.of("/called") > before + 10, { what: "the client's action continues" });
      assert.equal(counter.of("/scheduled"), left);
      database.open();
      await until(async () => await role(a) === "follower", { what: "the old leader follows" });
      await called;
      await add(a, "by way of the new leader");
    },
  );

  await steps.step(
    "[PG21] from all other servers releases the lease to them, and follows",
    async () => {
      await using c = await rig.start("c");
      await add(c, "while there is a way");
      await add(a, "from the other one");
      links.shut();
      links.breakOff();
      const next = async () => await role(a) === "leader" || await role(c) === "leader";
      await until(next, { what: "one of the others leads" });
      await b.logs(
        "warn No other server reaches this leader, which releases the lease",
      );
      await until(async () => await role(b) === "follower", { what: "the old leader follows" });
      for (const server of [a, c]) await add(server, "written by way of those that reach one another");
      links.open();
      await add(b, "and by way of it");
      await until(async () => (await notes(a)).length === (await notes(c)).length);
      assert.deepEqual(await notes(b), await notes(c));
    },
  );
});
