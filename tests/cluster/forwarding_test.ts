/** Requests to a follower: the leader runs them, and the follower that received them shows their results. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { clusterLimits } from "../../mod/cluster/postgres/limits.ts";
import { PostgresRows } from "../../mod/cluster/postgres/postgres_rows.ts";
import { LeaderCalls, LeaderConnection } from "../../mod/cluster/mod.ts";
import { connectTls } from "../../mod/cluster/tls.ts";
import { rateLimits } from "../../mod/auth/limits.ts";
import { bearerOf, type TestServer } from "../auth/server/test_server.ts";
import { FakeBucket } from "../ops/scheduled/fake_bucket.ts";
import { isLongRun } from "../support/long_runs.ts";
import { pause, until } from "../support/waiting.ts";
import { needs, postgres } from "../support/services.ts";
import { TestPostgres } from "./support/postgres.ts";
import { add, ClusterRig, notes, SECRET } from "./support/servers.ts";

/** Pause between requests of one client. */
const PAUSE_MS = 20;

const ACCOUNT = { email: "ann@example.com", password: "correct horse" };

async function role(server: TestServer): Promise<string | null> {
  const response = await fetch(`${server.url}/api/health/ready`);
  return (await response.json()).cluster?.role ?? null;
}

function addNamed(server: TestServer, { text, name }: { readonly text: string; readonly name: string }) {
  const headers = { "Syncline-Request": name };
  return server.post("/api/mutation", { path: "notes:add", args: { text } }, { headers });
}

async function me(server: TestServer, bearer: string) {
  return await server.post("/api/query", { path: "notes:me", args: {} }, { bearer });
}

Deno.test(needs(postgres, "requests to a follower"), async (t) => {
  await using postgres = await TestPostgres.start();
  await using bucket = new FakeBucket();
  await using rig = await ClusterRig.make(await postgres.database());
  await using open = new AsyncDisposableStack();
  // Each step depends on the previous one.
  const steps = {
    step: async (name: string, run: () => Promise<void>) => assert.ok(await t.step(name, run), name),
  };
  const storage = {
    s3: bucket.location(),
    uploadBytesMax: 20_000_000,
    privateReads: false,
    keepDeletedMs: 0,
    thumbnailSizes: null,
  };
  const a = open.use(await rig.first("a", { storage }));
  const root = await bearerOf(a);
  const b = open.use(await rig.start("b", { storage }));

  await steps.step("[PG9] mutations, actions, routes and schedules are run by the leader", async () => {
    assert.equal(await role(b), "follower");
    const ts = await add(b, "by a mutation");
    assert.ok(ts > 0);
    const acted = await b.post("/api/action", { path: "notes:addByAction", args: { text: "by an action" } });
    assert.deepEqual(acted.body.value, ["by a mutation", "by an action"]);
    const hook = await fetch(`${b.url}/hook`, { method: "POST", body: "by a route" });
    assert.deepEqual([hook.status, await hook.text()], [201, "by a route"]);
    assert.equal(hook.headers.get("x-url"), `${b.url}/hook`);
    assert.equal(hook.headers.get("syncline-passed-ts"), null);
    const shown = ["by a mutation", "by an action", "by a route"];
    assert.deepEqual(await notes(b), shown);
    const soon = await b.post("/api/mutation", { path: "notes:addSoon", args: { text: "soon" } });
    assert.equal(soon.body.status, "success");
    await until(async () => (await notes(b)).includes("soon"));
    // A follower may be the first to show it: it is in the log before the leader has committed it.
    await until(async () => (await notes(a)).includes("soon"));
    assert.deepEqual(await notes(a), [...shown, "soon"]);
    const refused = await b.post("/api/mutation", { path: "notes:add", args: { text: 1 } });
    assert.deepEqual(refused.status, (await a.post("/api/mutation", { path: "notes:add", args: {} })).status);
  });

  await steps.step(
    "[PG15] a write is visible at the server that answered it",
    async () => {
      await using socket = await b.socket();
      socket.send({
        type: "ModifyQuerySet",
        baseVersion: 0,
        newVersion: 1,
        modifications: [{ type: "Add", queryId: 0, udfPath: "notes:list", args: {} }],
      });
      await socket.message(({ type }) => type === "Transition");
      for (let round = 0; round < 20; round++) {
        const text = `round ${round}`;
        socket.send({ type: "Mutation", requestId: round, udfPath: "notes:add", args: { text } });
        const answer = await socket.message(({ type, requestId }) =>
          type === "MutationResponse" && requestId === round
        );
        assert.equal(answer.success, true, JSON.stringify(answer));
        assert.ok((await notes(b)).includes(text), `${text} is not there when it was answered`);
        await socket.message(({ type, endVersion }) => type === "Transition" && endVersion.ts >= answer.ts);
        await add(b, `${text} over HTTP`);
        assert.ok((await notes(b)).includes(`${text} over HTTP`));
      }
    },
  );

  await steps.step(
    "[PG9] [PG15] accounts are changed by the leader, and their tokens work on every server immediately",
    async () => {
      const { status, body } = await b.post("/api/auth/signup", ACCOUNT);
      assert.equal(status, 200, JSON.stringify(body));
      const mine = await me(b, body.accessToken);
      assert.ok(mine.body.value, JSON.stringify(mine.body));
      assert.equal((await me(a, body.accessToken)).body.value, mine.body.value);
      await using socket = await b.socket(body.accessToken);
      await socket.identityVersion(1);
      const again = await b.post("/api/auth/refresh", { refreshToken: body.refreshToken });
      assert.equal(again.status, 200, JSON.stringify(again.body));
      const { accessToken, refreshToken } = again.body;
      assert.equal((await me(b, accessToken)).body.value, mine.body.value);
      const gone = await fetch(`${b.url}/api/auth/signout`, {
        method: "POST",
        headers: { "Content-Type": "application/json", Authorization: `Bearer ${accessToken}` },
        body: JSON.stringify({ refreshToken }),
      });
      assert.ok(gone.ok, String(gone.status));
      await gone.body?.cancel();
      assert.equal((await me(b, accessToken)).status, 401);
      assert.equal((await b.post("/api/auth/signin", ACCOUNT)).status, 200);
    },
  );

  await steps.step("[PG23] attempts are counted together for all servers", async () => {
    const account = { ...ACCOUNT, email: "tried@example.com" };
    assert.equal((await a.post("/api/auth/signup", account)).status, 200);
    const wrong = { email: account.email, password: "not this one" };
    const { burst } = rateLimits.failuresPerAccountAndClient;
    let tries = 0;
    const tryAt = async (server: TestServer) => {
      tries++;
      const { status, body } = await server.post("/api/auth/signin", wrong);
      assert.ok([401, 429].includes(status), JSON.stringify(body));
      return status === 429;
    };
    await until(async () => await tryAt(a) || await tryAt(b), { what: "the request is refused" });
    assert.ok(tries > burst && tries < 2 * burst, `${tries} tries where ${burst} are allowed`);
  });

  await steps.step(
    "[PG13] a socket of the leader, too, shows nothing older than a follower has shown",
    async () => {
      const { append } = PostgresRows.prototype;
      const answered = Promise.withResolvers<void>();
      PostgresRows.prototype.append = async function (row) {
        const refused = await append.call(this, row);
        // The row is in the log, and the leader has not received the confirmation.
        await answered.promise;
        return refused;
      };
      let socket: Awaited<ReturnType<TestServer["socket"]>> | undefined;
      try {
        const added = add(a, "shown elsewhere before");
        await until(async () => (await notes(b)).includes("shown elsewhere before"));
        assert.ok(!(await notes(a)).includes("shown elsewhere before"));
        const from = performance.now();
        const opening = a.socket();
        setTimeout(answered.resolve, 200);
        socket = await opening;
        socket.send({
          type: "ModifyQuerySet",
          baseVersion: 0,
          newVersion: 1,
          modifications: [{ type: "Add", queryId: 0, udfPath: "notes:list", args: {} }],
        });
        const { endVersion } = await socket.message(({ type }) => type === "Transition");
        const ts = await added;
        // After this time, for example on a paused machine, a socket starts with an older state.
        if (performance.now() - from < clusterLimits.socketWaitMs) assert.ok(endVersion.ts >= ts);
      } finally {
        answered.resolve();
        PostgresRows.prototype.append = append;
        await socket?.[Symbol.asyncDispose]();
      }
    },
  );

  await steps.step(
    "[PG9] uploads go to the leader, in one piece or several, and are read everywhere",
    async () => {
      const urlOf = async () =>
        (await b.post("/api/mutation", { path: "notes:uploadUrl", args: {} })).body.value as string;
      const bytes = crypto.getRandomValues(new Uint8Array(60_000));
      const whole = await fetch(new URL(await urlOf(), b.url), { method: "POST", body: bytes });
      assert.equal(whole.status, 200, await whole.clone().text());
      const { storageId } = await whole.json();
      for (const server of [a, b]) {
        const read = await fetch(`${server.url}/api/storage/${storageId}`);
        assert.deepEqual(await read.bytes(), bytes);
      }
    },
  );

  await steps.step(
    "[PG9] an upload that the leader refuses while it is sent gets the reason",
    async () => {
      const urlOf = async () =>
        (await b.post("/api/mutation", { path: "notes:uploadUrl", args: {} })).body.value as string;
      const chunk = new Uint8Array(1_000_000);
      const inPieces = () => {
        let left = 25;
        return new ReadableStream<Uint8Array>({
          pull: (controller) => left-- > 0 ? controller.enqueue(chunk) : controller.close(),
        });
      };
      for (const body of [new Uint8Array(25_000_000), inPieces()]) {
        const refused = await fetch(new URL(await urlOf(), b.url), { method: "POST", body });
        assert.deepEqual([refused.status, (await refused.json()).errorData.code], [413, "file_too_large"]);
      }
    },
  );

  await steps.step(
    "[PG9] unnecessary percent-encoding of the path, or internal headers, change nothing",
    async () => {
      const ts = async () => (await (await fetch(`${a.url}/api/health`)).json()).ts;
      const before = await ts();
      const encoded = await b.post("/api/%61uth/signin", ACCOUNT);
      assert.equal(encoded.status, 200, JSON.stringify(encoded.body));
      assert.ok(await ts() > before);
      const headers = { "syncline-passed-refused": "1", "syncline-passed-ts": "7", "x-mine": "2" };
      const answer = await fetch(`${b.url}/refused`, {
        method: "POST",
        headers,
        body: "refused by a header",
      });
      assert.equal(answer.status, 200, await answer.clone().text());
      assert.equal(answer.headers.get("syncline-passed-refused"), null);
      const seen: string[] = await answer.json();
      assert.ok(seen.includes("x-mine"), String(seen));
      assert.deepEqual(seen.filter((name) => name.startsWith("syncline-passed-") && name in headers), []);
      assert.equal((await notes(b)).filter((text) => text === "refused by a header").length, 1);
    },
  );

  await steps.step("[PG9] administrators reach the leader by any server", async () => {
    const bearer = { bearer: root };
    const made = await b.post("/api/admin/backups", {}, bearer);
    assert.equal(made.status, 200, JSON.stringify(made.body));
    const headers = { Authorization: `Bearer ${root}` };
    const lists = await Promise.all(
      [a, b].map(async ({ url }) =>
        (await (await fetch(`${url}/api/admin/backups`, { headers })).json()).backups
      ),
    );
    assert.equal(lists[0].length, 1);
    assert.deepEqual(lists[1], lists[0]);
    // Each server reports its own state.
    const reported = await fetch(`${b.url}/api/admin/cluster`, { headers });
    assert.equal((await reported.json()).role, "follower");
  });

  await steps.step("[PG20] servers with a functions folder refuse a deploy", async () => {
    for (const { url } of [a, b]) {
      const headers = { Authorization: `Bearer ${root}` };
      const answer = await fetch(`${url}/api/admin/functions`, { method: "PUT", headers, body: "a bundle" });
      const { errorMessage, errorData } = await answer.json();
      assert.deepEqual([answer.status, errorData.code], [409, "functions_pinned"]);
      assert.match(errorMessage, /serves the folder it was started with/);
    }
  });

  await steps.step("[PG17] the port for servers requires the certificate and the secret", async () => {
    const client = await postgres.client("test_1");
    const { rows: [lease] } = await client.query<{ address: string; certificate: string }>(
      "select address, certificate from syncline.lease",
    );
    await client.end();
    assert.ok(lease !== undefined);
    const port = Number(lease.address.split(":").at(-1));
    assert.notEqual(port, Number(new URL(a.url).port));
    const hello = { name: "stranger", commits: false };
    for (const secret of [SECRET, "", "another secret of all servers"]) {
      const calls = new LeaderCalls({ ts: () => 0 });
      const conn = await connectTls(lease, AbortSignal.timeout(60_000));
      await assert.rejects(LeaderConnection.open({ conn, secret, hello, calls }), /has another secret/);
      calls.close();
    }
    const plain = await Deno.connect({ hostname: "127.0.0.1", port });
    await plain.write(new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n"));
    // A TLS alert at most, then the end.
    const text = await new Response(plain.readable).text().catch(() => "");
    assert.ok(!text.includes("HTTP"));
    await a.logs("warn Refused a follower");
    // Clients cannot use internal headers.
    const headers = {
      "syncline-passed-call": "mutation",
      "syncline-passed-key": "",
      "syncline-passed-ts": "999999",
    };
    const response = await fetch(`${b.url}/api/auth/providers`, { headers });
    assert.equal(response.status, 200);
    await response.body?.cancel();
  });

  await steps.step(
    "[PG16] while the leader changes, requests wait for the next one and run once",
    async () => {
      await using c = await rig.start("c", { storage });
      const session = crypto.randomUUID();
      let stopped = false;
      const failures: unknown[] = [];
      const done: string[] = [];
      const writer = async (server: TestServer, who: string) => {
        for (let n = 0; !stopped; n++) {
          const text = `${who} ${n}`;
          const { body } = await addNamed(server, { text, name: `${crypto.randomUUID()} ${n}` });
          if (body.status === "success") done.push(text);
          else failures.push(body);
          await pause(PAUSE_MS);
        }
      };
      const signIns = async () => {
        for (let n = 0; !stopped; n++) {
          const { status, body } = await c.post("/api/auth/signup", {
            ...ACCOUNT,
            email: `n${n}@example.com`,
          });
          if (status !== 200 && body.errorData?.code !== "rate_limited") failures.push(body);
          await pause(PAUSE_MS);
        }
      };
      const work = [writer(c, "c"), writer(c, "c too"), signIns()];
      await until(() => done.length > 10 || failures.length > 0);
      await a.restart(async () => {
        await until(async () => (await role(b)) === "leader" || (await role(c)) === "leader");
      });
      const before = done.length;
      await until(() => done.length > before + 10 || failures.length > 0);
      stopped = true;
      await Promise.all(work);
      // If this server has become the leader, its own clients must retry.
      const newest = () => c.logged.slice(-20).join("\n");
      if (await role(c) === "follower") assert.deepEqual(failures, [], newest());
      await addNamed(c, { text: "named", name: `${session} 1` });
      const again = await addNamed(a, { text: "named", name: `${session} 1` });
      assert.equal(again.body.status, "success");
      const there = (await notes(c)).filter((text) => text.startsWith("c") || text === "named");
      assert.equal(new Set(there).size, there.length, "nothing is done twice");
      assert.deepEqual(done.filter((text) => !there.includes(text)), [], "nothing acknowledged is lost");
      await until(async () => (await notes(a)).length === (await notes(c)).length);
      assert.equal((await notes(a)).filter((text) => text === "named").length, 1);
      // When the leader is stopped it hands over to another server.
    },
  );

  await steps.step(
    "[PG8] when the leader is stopped, another server leads within seconds, and no write is lost or repeated",
    async () => {
      let leader = a;
      await until(async () => {
        for (const server of [a, b]) if (await role(server) === "leader") leader = server;
        return await role(leader) === "leader";
      });
      const next = leader === a ? b : a;
      assert.equal(await role(next), "follower");
      const codes = new Set<string>();
      const done: string[] = [];
      const refused: string[] = [];
      let lastAt = 0;
      let pauseMs = 0;
      let stopped = false;
      // Without a request id, the outcome of a write may be unknown.
      const write = async (name: string) => {
        for (let n = 0; !stopped; n++) {
          const text = `${name} ${n}`;
          const { body } = await next.post("/api/mutation", { path: "notes:add", args: { text } });
          const now = performance.now();
          if (body.status === "success") {
            if (lastAt > 0) pauseMs = Math.max(pauseMs, now - lastAt);
            lastAt = now;
            done.push(text);
          } else {
            const { code } = body.errorData;
            codes.add(code);
            if (code === "unavailable") refused.push(text);
          }
          await pause(PAUSE_MS);
        }
      };
      const work = [write("handed"), write("over")];
      await until(() => done.length > 10);
      let atEnd = 0;
      await leader.restart(async () => {
        atEnd = done.length;
        await until(async () => await role(next) === "leader");
        await until(() => done.length > atEnd + 10);
      });
      stopped = true;
      await Promise.all(work);
      const known = new Set(["unavailable", "outcome_unknown"]);
      assert.ok(codes.isSubsetOf(known), `${[...codes]}\n${next.logged.slice(-20).join("\n")}`);
      if (isLongRun) assert.ok(pauseMs < 10_000, `writes paused ${pauseMs} ms`);
      const stored = (await notes(next)).filter((text) => /^(handed|over) /.test(text));
      assert.equal(new Set(stored).size, stored.length, "none is there twice");
      assert.ok(new Set(done).isSubsetOf(new Set(stored)), "each acknowledged write is there");
      assert.ok(new Set(refused).isDisjointFrom(new Set(stored)), "no refused write is there");
      await until(async () => (await notes(leader)).length === (await notes(next)).length);
    },
  );

  await steps.step(
    "[PG8] [PG9] after a stop, no scheduled action continues at the old leader, and a resumable upload starts again",
    async () => {
      const leader = await role(a) === "leader" ? a : b;
      const next = leader === a ? b : a;
      const beats = async () => (await notes(next)).filter((text) => text.startsWith("beat ")).length;
      const { body } = await next.post("/api/mutation", { path: "notes:beatSoon", args: {} });
      assert.equal(body.status, "success", JSON.stringify(body));
      await until(async () => await beats() > 3, { what: "the action runs" });
      const url = (await next.post("/api/mutation", { path: "notes:uploadUrl", args: {} })).body
        .value as string;
      const bytes = crypto.getRandomValues(new Uint8Array(60_000));
      const headers = { "Tus-Resumable": "1.0.0" };
      const at = new URL(url.replace("/upload?", "/resumable?"), next.url);
      const begin = () =>
        fetch(at, { method: "POST", headers: { ...headers, "Upload-Length": String(bytes.length) } });
      const begun = await begin();
      assert.equal(begun.status, 201, await begun.text());
      const place = new URL(begun.headers.get("location") ?? "", next.url);
      const send = async (from: number, to: number) => {
        const type = { "Content-Type": "application/offset+octet-stream", "Upload-Offset": String(from) };
        const answer = await fetch(place, {
          method: "PATCH",
          headers: { ...headers, ...type },
          body: bytes.subarray(from, to),
        });
        await answer.body?.cancel();
        return answer;
      };
      assert.equal((await send(0, 20_000)).headers.get("upload-offset"), "20000");

      await leader.restart(async () => {
        await until(async () => await role(next) === "leader");
        // The old leader has ended the action before it released the lease.
        const { body: { value } } = await next.post("/api/query", { path: "notes:jobErrors", args: {} });
        assert.equal(value.length, 1);
        assert.match(value[0], /ended its isolate|the server stopped/);
        const left = await beats();
        await add(next, "behind it");
        assert.equal(await beats(), left);
      });
      // Clients of the protocol start again after a 404.
      const asked = await fetch(place, { method: "HEAD", headers });
      assert.equal(asked.status, 404);
      assert.equal((await send(20_000, 60_000)).status, 404);
      const again = await begin();
      assert.equal(again.status, 201, await again.text());
      const done = await send(0, 60_000);
      const storageId = done.headers.get("syncline-storage-id");
      const read = await fetch(`${leader.url}/api/storage/${storageId}`);
      assert.deepEqual(await read.bytes(), bytes);
    },
  );

  await steps.step("[PG1] [PG7] a row whose writer is lost before its commit counts once", async () => {
    const leader = await role(a) === "leader" ? { server: a, folder: "a" } : { server: b, folder: "b" };
    const { append } = PostgresRows.prototype;
    const killed: number[] = [];
    PostgresRows.prototype.append = async function (row) {
      const refused = await append.call(this, row);
      // The row is in the log, but no server has read it.
      if (killed.length === 0) {
        for (const pid of await writersIn(join(rig.folder, leader.folder))) {
          killed.push(pid);
          Deno.kill(pid, "SIGKILL");
        }
      }
      return refused;
    };
    try {
      const name = `${crypto.randomUUID()} 1`;
      await until(async () => {
        const { body } = await addNamed(leader.server, { text: "once", name });
        return body.status === "success";
      });
      assert.equal(killed.length, 1);
      for (const server of [a, b]) {
        await until(async () => (await notes(server)).includes("once"));
        assert.equal((await notes(server)).filter((text) => text === "once").length, 1);
      }
      await add(b, "goes on");
    } finally {
      PostgresRows.prototype.append = append;
    }
  });
});

/** Process ids of the writers of a data folder. */
async function writersIn(dataDir: string): Promise<number[]> {
  const pattern = `${dataDir}/run-[^/]*/writer-[0-9]+$`;
  const { stdout } = await new Deno.Command("pgrep", { args: ["-f", pattern] }).output();
  return new TextDecoder().decode(stdout).split("\n").filter(Boolean).map(Number);
}
