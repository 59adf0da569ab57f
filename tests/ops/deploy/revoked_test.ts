/** Long requests below `/api/admin` whose key or session ends before they take effect. */
import assert from "node:assert/strict";
import {
  appWith,
  bundleOf,
  type DeployWorld,
  firstApp,
  password,
  secondApp,
  startDeployWorld,
} from "./support.ts";
import { until } from "../../support/waiting.ts";

/** A body that pauses after its first bytes. */
class HeldBody {
  readonly #rest = Promise.withResolvers<void>();
  readonly #begun = Promise.withResolvers<void>();
  readonly stream: ReadableStream<Uint8Array>;

  constructor(bytes: Uint8Array) {
    let sent = false;
    this.stream = new ReadableStream({
      pull: async (controller) => {
        if (!sent) {
          sent = true;
          return controller.enqueue(bytes.subarray(0, 20));
        }
        this.#begun.resolve();
        await this.#rest.promise;
        controller.enqueue(bytes.subarray(20));
        controller.close();
      },
    });
  }

  /** Resolves when the first bytes have been sent. */
  get begun(): Promise<void> {
    return this.#begun.promise;
  }

  send(): void {
    this.#rest.resolve();
  }
}

async function served(world: DeployWorld): Promise<string> {
  return await world.call("query", "notes:version");
}

/** Signs another administrator in. */
async function secondAdmin({ server, call, admin }: DeployWorld, email = "second@example.com") {
  await call("action", "_admin/administrators:create", { email, password }, admin);
  const signIn = async () => (await server.post("/api/auth/admin/signin", { email, password })).body;
  return {
    signIn,
    signOut: (refreshToken: string) => server.post("/api/auth/signout", { refreshToken }),
  };
}

Deno.test("a deploy is authorized again before it takes effect", async (t) => {
  await using world = await startDeployWorld();
  const { admin, admin_, call } = world;
  const create = (name: string) => call("action", "_admin/apiKeys:create", { name, deploy: true }, admin);
  const revoke = (keyId: string) => call("mutation", "_admin/apiKeys:revoke", { keyId }, admin);
  const { bytes } = await bundleOf(secondApp);
  const firstHash = (await world.deploy(firstApp)).body.hash;

  await t.step(
    "DK3 DP7 a key revoked while its bundle uploads deploys nothing, and delays no other key",
    async () => {
      const [slow, other] = [await create("slow"), await create("other")];
      const before = await world.leftovers();
      const body = new HeldBody(bytes);
      const deploying = admin_("PUT", "/functions", body.stream, slow.key);
      await body.begun;
      const meanwhile = await world.deploy(firstApp, { bearer: other.key });
      assert.deepEqual(
        [meanwhile.status, meanwhile.body.hash],
        [200, firstHash],
        meanwhile.body.errorMessage,
      );
      await revoke(slow.keyId);
      body.send();
      const { status, code } = await deploying;
      assert.deepEqual([status, code], [401, "invalid_token"]);
      assert.equal(await served(world), "one");
      assert.deepEqual(await world.leftovers(), before);
    },
  );

  /** Another version at each call, so that each is unpacked. */
  let versions = 0;
  const slowToLoad = () => {
    const loop = `\nfor (let i = 0, x = ${++versions}; i < 3e7; i++) x = (x * 31 + i) | 0;`;
    return appWith({ "functions/notes.ts": (text) => text.replace('"one"', '"slow"') + loop });
  };
  /** Deploys an app that loads slowly. Resolves when its bundle is unpacked and loading has started. */
  const startDeploy = async (bearer: string) => {
    const before = (await world.leftovers()).length;
    let ended = false;
    const { bytes } = await bundleOf(slowToLoad());
    const deploying = admin_("PUT", "/functions", bytes, bearer).finally(() => ended = true);
    const isUnpacked = async () =>
      (await world.leftovers()).filter((name) => name.startsWith("versions/")).length > before;
    while (!await isUnpacked()) assert.ok(!ended, JSON.stringify(ended && await deploying));
    return { deploying };
  };
  /** Checks a deploy whose caller loses access. On a busy machine that may be too late. Then another caller deploys. */
  const loses = async (access: () => Promise<{ bearer: string; end: () => Promise<unknown> }>) => {
    for (let tries = 0; tries < 10; tries++) {
      const { bearer, end } = await access();
      const before = await world.leftovers();
      const { deploying } = await startDeploy(bearer);
      await end();
      const { status, code } = await deploying;
      if (status === 200) {
        await world.deploy(firstApp);
        continue;
      }
      assert.deepEqual([status, code], [401, "invalid_token"]);
      assert.equal(await served(world), "one");
      assert.deepEqual(await world.leftovers(), before);
      return;
    }
    assert.fail("each deploy took effect");
  };

  await t.step("DK3 a key revoked while its bundle is checked deploys nothing", async () => {
    await loses(async () => {
      const { key, keyId } = await create("checked");
      return { bearer: key, end: () => revoke(keyId) };
    });
  });

  await t.step(
    "AD14 a session that ends while its deploy is checked or uploaded deploys nothing",
    async () => {
      const second = await secondAdmin(world);
      const uploader = await second.signIn();
      const body = new HeldBody(bytes);
      const uploading = admin_("PUT", "/functions", body.stream, uploader.accessToken);
      await body.begun;
      await second.signOut(uploader.refreshToken);
      body.send();
      assert.equal((await uploading).code, "invalid_token");
      assert.equal(await served(world), "one");
      await loses(async () => {
        const { accessToken, refreshToken } = await second.signIn();
        return { bearer: accessToken, end: () => second.signOut(refreshToken) };
      });
    },
  );

  await t.step("DP7 of two concurrent deploys the second is refused, and works afterwards", async () => {
    const first = (await bundleOf(firstApp)).bytes;
    const seconds: readonly (() => ReturnType<typeof admin_>)[] = [
      () => admin_("POST", "/functions/rollback", { hash: firstHash }),
      () => admin_("PUT", "/functions", first),
    ];
    for (const second of seconds) {
      // On a busy machine the first may end before the second arrives. Then again.
      for (let tries = 0, isRefused = false; !isRefused; tries++) {
        assert.ok(tries < 10, "the second is never refused");
        const { deploying } = await startDeploy(admin);
        const refused = await second();
        assert.equal((await deploying).status, 200);
        isRefused = refused.status !== 200;
        if (isRefused) assert.deepEqual([refused.status, refused.code], [409, "deploy_in_progress"]);
      }
      assert.equal(await served(world), "slow");
    }
    assert.equal((await world.deploy(secondApp)).status, 200);
    assert.equal(await served(world), "two");
  });

  await t.step(
    "DP16 one caller can upload one bundle at a time, and few callers can upload concurrently",
    async () => {
      const bodies: HeldBody[] = [];
      const uploads = async () =>
        (await world.leftovers()).filter((name) => name.startsWith("incoming/")).length;
      const upload = (bearer: string) => admin_("PUT", "/functions?dryRun=true", bytes, bearer);
      const keys = await Promise.all(Array.from({ length: 9 }, (_, index) => create(`at once ${index}`)));
      const answers = [];
      for (const { key } of keys.slice(0, 8)) {
        const body = new HeldBody(bytes);
        answers.push(admin_("PUT", "/functions?dryRun=true", body.stream, key));
        bodies.push(body);
        // Only the server's file shows that it has accepted the upload.
        await until(async () => await uploads() === bodies.length);
      }
      const again = await upload(keys[0].key);
      assert.deepEqual([again.status, again.code], [409, "deploy_in_progress"]);
      const ninth = await upload(keys[8].key);
      assert.equal(ninth.code, "overloaded");
      for (const body of bodies) body.send();
      const statuses = (await Promise.all(answers)).map(({ status }) => status);
      assert.ok(statuses.every((status) => status === 200 || status === 409), String(statuses));
      assert.ok(statuses.includes(200));
      assert.equal((await upload(keys[8].key)).status, 200);
    },
  );

  await t.step("AD14 an administrator's upload takes effect only if the session is still live", async (t) => {
    const second = await secondAdmin(world, "third@example.com");
    /** Sends a request whose session ends during the body. */
    const interrupted = async (path: string, bytes: Uint8Array) => {
      const { accessToken, refreshToken } = await second.signIn();
      const body = new HeldBody(bytes);
      const answer = admin_("POST", path, body.stream, accessToken);
      await body.begun;
      await second.signOut(refreshToken);
      body.send();
      const { status, code } = await answer;
      assert.deepEqual([status, code], [401, "invalid_token"]);
    };

    await t.step("an import writes nothing", async () => {
      const rows = new TextEncoder().encode('{"body":"a row of an import"}\n{"body":"another"}\n');
      await interrupted("/import/notes?mode=replace", rows);
      assert.deepEqual(await call("query", "notes:list"), []);
      const imported = await admin_("POST", "/import/notes", rows, admin);
      assert.equal(imported.status, 200, imported.body.errorMessage);
      assert.equal((await call("query", "notes:list")).length, 2);
    });

    await t.step("an uploaded archive is not staged", async () => {
      const { body: { name } } = await admin_("POST", "/backups", {});
      const response = await fetch(`${world.server.url}/api/admin/backups/${name}`, {
        headers: { Authorization: `Bearer ${admin}` },
      });
      const archive = new Uint8Array(await response.arrayBuffer());
      await interrupted("/restore?name=a.tar.zst", archive);
      assert.equal((await admin_("GET", "/restore")).body.restore, null);
      assert.equal((await admin_("POST", "/restore?name=a.tar.zst", archive, admin)).status, 200);
    });
  });
});
