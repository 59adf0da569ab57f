/** Users, their sessions and administrators, as administrators see and change them. */
import assert from "node:assert/strict";
import { password, startWorld, type World } from "./support/world.ts";

const page = (numItems = 50) => ({ cursor: null, numItems });

Deno.test("administrators and accounts", async (t) => {
  await using world = await startWorld();
  const { ok, call, server } = world;
  const emails = async (args: object = {}) =>
    (await ok("query", "_admin/users:list", { paginationOpts: page(), ...args })).page
      .map(({ email }: { email: string | null }) => email);

  await t.step(
    "[SY10] users are listed by page in three orders, and found by words, a prefix or an id",
    async () => {
      for (const email of ["bob@example.com", "carol@other.org"]) await world.signUp(email);
      assert.deepEqual(await emails(), ["carol@other.org", "bob@example.com", "ada@example.com"]);
      assert.deepEqual(await emails({ order: "oldest" }), [
        "ada@example.com",
        "bob@example.com",
        "carol@other.org",
      ]);
      assert.deepEqual(await emails({ order: "email" }), [
        "ada@example.com",
        "bob@example.com",
        "carol@other.org",
      ]);
      const first = await ok("query", "_admin/users:list", { paginationOpts: page(2) });
      const rest = await ok("query", "_admin/users:list", {
        paginationOpts: { cursor: first.continueCursor, numItems: 2 },
      });
      assert.deepEqual([first.page.length, first.isDone, rest.page[0].email], [2, false, "ada@example.com"]);
      await ok("mutation", "_admin/users:edit", { userId: world.userId, name: "Ada Lovelace" });
      for (
        const [search, found] of [
          ["other", ["carol@other.org"]],
          ["lovel", ["ada@example.com"]],
          ["bob@example.com", ["bob@example.com"]],
          [world.userId, ["ada@example.com"]],
          ["nobody", []],
          ['"(*) AND', []],
        ] as const
      ) assert.deepEqual(await emails({ search }), found, search);
      assert.deepEqual(
        await ok("query", "_admin/users:emails", { userIds: [world.userId, "unknown"] }),
        { [world.userId]: "ada@example.com" },
      );
    },
  );

  await t.step("[SY11] a user is created with or without a password, edited, verified", async () => {
    const { userId } = await ok("action", "_admin/users:create", {
      email: " Dora@Example.com ",
      password,
      emailVerified: false,
    });
    const shown = async () => await ok("query", "_admin/users:get", { userId });
    const { email, emailVerified, hasPassword } = await shown();
    assert.deepEqual([email, emailVerified, hasPassword], ["dora@example.com", false, true]);
    await ok("mutation", "_admin/users:edit", {
      userId,
      emailVerified: true,
      email: "dora2@example.com",
      name: "D",
    });
    const edited = await shown();
    assert.deepEqual([edited.email, edited.emailVerified, edited.name], ["dora2@example.com", true, "D"]);
    const signedIn = await server.post("/api/auth/signin", { email: "dora2@example.com", password });
    assert.equal(signedIn.status, 200);
    const without = await ok("action", "_admin/users:create", { email: "eve@example.com" });
    assert.equal((await ok("query", "_admin/users:get", without)).hasPassword, false);
    const refused: readonly (readonly ["mutation" | "action", string, object, string])[] = [
      ["action", "_admin/users:create", { email: "dora2@example.com" }, "email_in_use"],
      ["action", "_admin/users:create", { email: "no address" }, "invalid_email"],
      ["action", "_admin/users:create", { email: "x@example.com", password: "short" }, "weak_password"],
      ["mutation", "_admin/users:edit", { userId, email: "ada@example.com" }, "email_in_use"],
      ["mutation", "_admin/users:edit", { userId, email: "@" }, "invalid_email"],
      ["mutation", "_admin/users:edit", { userId: world.adminId }, "user_not_found"],
      ["mutation", "_admin/users:edit", { userId: "x" }, "user_not_found"],
      ["action", "_admin/users:setPassword", { userId: "x", password }, "user_not_found"],
      ["action", "_admin/users:remove", { userId: "x" }, "user_not_found"],
      ["action", "_admin/users:sendReset", { userId }, "mail_disabled"],
      ["action", "_admin/users:sendReset", { userId: "x" }, "user_not_found"],
    ];
    for (const [kind, path, args, code] of refused) {
      const answer = await call(kind, path, args);
      assert.deepEqual([answer.status, answer.code], [400, code], `${path} ${JSON.stringify(args)}`);
    }
    assert.equal(await ok("query", "_admin/users:get", { userId: "x" }), null);
  });

  await t.step(
    "[SY12] sessions of a user are shown, ended one by one or all, and by a new password",
    async () => {
      const user = await world.signUp("frank@example.com");
      const again = async () =>
        (await server.post("/api/auth/signin", { email: "frank@example.com", password })).body;
      const second = await again();
      const { list } = await ok("query", "_admin/users:get", { userId: user.userId });
      assert.equal(list.length, 2);
      assert.deepEqual([list[0].impersonatedBy, list[0].address], [null, null]);
      await using socket = await server.socket(second.accessToken);
      await socket.identityVersion(1);
      await ok("mutation", "_admin/users:endSession", { sessionId: list[0].sessionId });
      await socket.closed;
      assert.equal((await call("action", "messages:who", {}, user.accessToken)).status, 200);
      assert.equal(await ok("mutation", "_admin/users:endSessions", { userId: user.userId }), 1);
      assert.equal((await call("action", "messages:who", {}, user.accessToken)).code, "invalid_token");
      const third = await again();
      assert.deepEqual(
        await ok("action", "_admin/users:setPassword", { userId: user.userId, password: "another password" }),
        { ended: 1 },
      );
      assert.equal((await call("action", "messages:who", {}, third.accessToken)).code, "invalid_token");
      assert.equal((await again()).errorData.code, "invalid_credentials");
      for (const sessionId of [list[0].sessionId, "x", user.userId]) {
        assert.equal(
          (await call("mutation", "_admin/users:endSession", { sessionId })).code,
          "session_not_found",
        );
      }
    },
  );

  await t.step(
    "[SY13] deleting a user deletes their sessions and the rows that the app's tables tie to them, and nothing else",
    async () => {
      await deleteWithCascade(world);
    },
  );

  await t.step(
    "[SY14] administrators are listed, created, signed out and removed, but never the last one",
    async () => {
      const other = await world.addAdmin("second@example.com");
      const admins = await ok("query", "_admin/administrators:list");
      assert.deepEqual(
        admins.map(({ email, you }: { email: string; you: boolean }) => [email, you]),
        [["root@example.com", true], ["second@example.com", false]],
      );
      const sessions = await ok("query", "_admin/administrators:sessions", { adminId: other.adminId });
      assert.equal(sessions.length, 1);
      assert.match(sessions[0].address, /^(127\.0\.0\.1|::1)$/);
      await ok("mutation", "_admin/administrators:endSession", { sessionId: sessions[0].sessionId });
      assert.equal(
        (await call("query", "_admin/administrators:me", {}, other.accessToken)).code,
        "invalid_token",
      );
      const back = await world.signInAdmin("second@example.com");
      await ok("mutation", "_admin/administrators:remove", { adminId: other.adminId });
      assert.equal(
        (await call("query", "_admin/administrators:me", {}, back.accessToken)).code,
        "invalid_token",
      );
      const last = await call("mutation", "_admin/administrators:remove", { adminId: world.adminId });
      assert.deepEqual([last.status, last.code], [400, "last_owner"]);
      const gone = await call("mutation", "_admin/administrators:remove", { adminId: other.adminId });
      assert.equal(gone.code, "administrator_not_found");
      const taken = await call("action", "_admin/administrators:create", {
        email: "root@example.com",
        password,
      });
      assert.equal(taken.code, "email_in_use");
    },
  );

  await t.step(
    "[SY15] changing an administrator's password requires the current one and ends the other sessions",
    async () => {
      const other = await world.addAdmin("third@example.com");
      const elsewhere = await world.signInAdmin("third@example.com");
      const change = (currentPassword: string) =>
        call("action", "_admin/administrators:changePassword", {
          currentPassword,
          newPassword: "a better password",
        }, other.accessToken);
      assert.equal((await change("wrong password")).code, "invalid_credentials");
      assert.equal((await change(password)).status, 200);
      assert.equal((await call("query", "_admin/administrators:me", {}, other.accessToken)).status, 200);
      assert.equal(
        (await call("query", "_admin/administrators:me", {}, elsewhere.accessToken)).code,
        "invalid_token",
      );
      await world.signInAdmin("third@example.com", "a better password");
    },
  );
});

async function deleteWithCascade({ ok, call, signUp, userId }: World): Promise<void> {
  const leaving = await signUp("leaving@example.com");
  const many = Array.from(
    { length: 700 },
    (_, i) => ({ channel: "c", body: `${i}`, author: leaving.userId }),
  );
  await ok("mutation", "_admin/data:insert", { table: "messages", documents: many });
  await ok("mutation", "_admin/data:insert", {
    table: "messages",
    documents: [{ channel: "c", body: "stays", author: userId }, { channel: "c", body: "nobody's" }],
  });
  await ok("mutation", "_admin/data:insert", {
    table: "channels",
    documents: [{ name: "theirs, but not named", owner: leaving.userId }],
  });
  assert.deepEqual(await ok("action", "_admin/users:remove", { userId: leaving.userId }), { deleted: 700 });
  assert.equal(await ok("query", "_admin/users:get", { userId: leaving.userId }), null);
  assert.equal((await call("action", "messages:who", {}, leaving.accessToken)).code, "invalid_token");
  const left = await ok("query", "_admin/data:documents", {
    table: "messages",
    paginationOpts: { cursor: null, numItems: 10 },
  });
  assert.deepEqual(left.page.map(({ body }: { body: string }) => body), ["nobody's", "stays"]);
  const channels = await ok("query", "_admin/data:documents", {
    table: "channels",
    conditions: [{ field: "owner", op: "eq", value: leaving.userId }],
    paginationOpts: { cursor: null, numItems: 10 },
  });
  assert.equal(channels.page.length, 1);
}
