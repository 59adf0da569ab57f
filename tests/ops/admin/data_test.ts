/** Documents, schema, functions, background tasks, schedule and files, as administrators see and change them. */
import assert from "node:assert/strict";
import { SynclineClient } from "../../../mod/client/mod.ts";
import { until } from "../../support/waiting.ts";
import { startWorld, type World } from "./support/world.ts";

const paginationOpts = { cursor: null, numItems: 100 };

/** Polls until a task has ended. */
async function ended({ ok }: World, workId: string) {
  for (;;) {
    const work = await ok("query", "_admin/work:get", { workId });
    if (work.state !== "running") return work;
  }
}

Deno.test("data and code for administrators", async (t) => {
  await using world = await startWorld();
  const { ok, call, server } = world;
  const documents = async (args: object) =>
    (await ok("query", "_admin/data:documents", { table: "messages", paginationOpts, ...args })).page;
  const bodies = async (args: object) => (await documents(args)).map(({ body }: { body: string }) => body);
  await ok("mutation", "_admin/data:insert", {
    table: "messages",
    documents: [
      { channel: "a", body: "Hello world", likes: 3 },
      { channel: "a", body: "Hello moon", likes: 1 },
      { channel: "b", body: "Good night", likes: 2 },
      { channel: "b", body: "no likes yet" },
    ],
  });

  await t.step(
    "[SY20] tables are listed with schema, indexes and counts, their sizes by a separate action",
    async () => {
      const tables = await ok("query", "_admin/data:tables");
      const messages = tables.find(({ name }: { name: string }) => name === "messages");
      assert.deepEqual([messages.count, messages.more, messages.ofService], [4, false, false]);
      assert.deepEqual(messages.schema.properties.author, {
        type: "string",
        format: "id",
        "x-table": "_users",
      });
      assert.deepEqual(messages.schema.required, ["channel", "body"]);
      assert.equal(messages.schema.properties.body.maxLength, 200);
      assert.deepEqual(messages.indexes[0], { name: "by_channel", fields: ["channel", "likes"] });
      assert.equal(messages.deletedWithUser, "by_author");
      assert.deepEqual(
        await ok("query", "_admin/schema:get"),
        tables.map((
          { count: _count, more: _more, orphaned: _orphaned, ...facts }: Record<string, unknown>,
        ) => facts),
      );
      assert.ok(!JSON.stringify(tables).includes("_passwords"));
      const { tables: sizes } = await ok("action", "_admin/data:sizes");
      const size = sizes.find(({ table }: { table: string }) => table === "messages");
      assert.equal(size.documents, 4);
      assert.ok(size.bytes >= 4096 && size.indexBytes >= 4 * 4096);
    },
  );

  await t.step(
    "[SY21] documents are read by page, along any index, by a search, with conditions",
    async () => {
      const cases: readonly (readonly [object, readonly string[]])[] = [
        [{}, ["no likes yet", "Good night", "Hello moon", "Hello world"]],
        [{ order: "asc", paginationOpts: { cursor: null, numItems: 1 } }, ["Hello world"]],
        [{ index: "by_channel", range: { eq: ["a"] } }, ["Hello moon", "Hello world"]],
        [{ index: "by_channel", range: { eq: ["a"], gt: 1 } }, ["Hello world"]],
        [{ index: "by_channel", range: { gte: "b" }, order: "desc" }, ["Good night", "no likes yet"]],
        [{ index: "by_channel", range: { eq: ["b", { $missing: true }] } }, ["no likes yet"]],
        [{ search: { index: "search_body", text: "hel" } }, ["Hello world", "Hello moon"]],
        [{ search: { index: "search_body", text: "hello", eq: { channel: "b" } } }, []],
        [{ conditions: [{ field: "likes", op: "gte", value: 2 }] }, ["Good night", "Hello world"]],
        [{ conditions: [{ field: "likes", op: "missing" }] }, ["no likes yet"]],
        [{ conditions: [{ field: "body", op: "contains", value: "NIGHT" }] }, ["Good night"]],
        [{ conditions: [{ field: "meta.tags", op: "present" }] }, []],
      ];
      for (const [args, expected] of cases) {
        assert.deepEqual((await bodies(args)).sort(), [...expected].sort(), JSON.stringify(args));
      }
      const refused: readonly (readonly [object, string])[] = [
        [{ table: "nothing" }, "bad_request"],
        [{ table: "_passwords" }, "unknown_table"],
        [{ table: "_sessions" }, "unknown_table"],
        [{ index: "by_nothing" }, "bad_request"],
        [{ index: "by_channel", range: { eq: ["a", 1, 2, 3] } }, "bad_request"],
        [{ search: { index: "search_nothing", text: "x" } }, "bad_request"],
        [{ search: { index: "search_body", text: "x" }, order: "asc" }, "bad_request"],
        [{ paginationOpts: { cursor: "made up", numItems: 5 } }, "invalid_cursor"],
      ];
      for (const [args, code] of refused) {
        const answer = await call("query", "_admin/data:documents", {
          table: "messages",
          paginationOpts,
          ...args,
        });
        assert.deepEqual([answer.status, answer.code], [400, code], JSON.stringify(args));
      }
      const counts: readonly (readonly [object, number])[] = [
        [{}, 4],
        [{ index: "by_channel", range: { eq: ["a"] } }, 2],
        [{ index: "by_channel", range: { eq: ["a"], gt: 1 } }, 1],
        [{ index: "by_channel", range: { gt: "b", lt: "a" } }, 0],
        [{ index: "by_id" }, 4],
      ];
      for (const [args, expected] of counts) {
        const count = await ok("query", "_admin/data:count", { table: "messages", ...args });
        assert.deepEqual(count, { count: expected, more: false }, JSON.stringify(args));
      }
      for (
        const args of [{}, { order: "asc" }, { index: "by_channel", range: { gte: "a" } }, { index: "by_id" }]
      ) {
        const all = await bodies(args);
        for (let behind = 1; behind <= 5; behind++) {
          const { cursor } = await ok("query", "_admin/data:position", {
            table: "messages",
            behind,
            ...args,
          });
          if (behind > 4) assert.equal(cursor, null);
          else {
            const rest = await bodies({ ...args, paginationOpts: { cursor, numItems: 100 } });
            assert.deepEqual(rest, all.slice(behind), JSON.stringify({ args, behind }));
            const there = { table: "messages", ...args, before: cursor };
            for (let rows = 1; rows <= behind; rows++) {
              const earlier = await ok("query", "_admin/data:position", { ...there, behind: rows });
              if (rows === behind) assert.equal(earlier.cursor, null);
              else {
                const shown = { ...args, paginationOpts: { cursor: earlier.cursor, numItems: rows } };
                assert.deepEqual(
                  await bodies(shown),
                  all.slice(behind - rows, behind),
                  JSON.stringify(shown),
                );
              }
            }
          }
        }
      }
      for (
        const [path, args, code] of [
          ["count", { search: { index: "search_body", text: "hel" } }, "bad_request"],
          ["count", { conditions: [{ field: "likes", op: "missing" }] }, "bad_request"],
          ["count", { table: "_passwords" }, "unknown_table"],
          ["position", { table: "_sessions", behind: 1 }, "unknown_table"],
          ["position", { behind: 0 }, null],
          ["position", { index: "by_nothing", behind: 1 }, "bad_request"],
        ] as const
      ) {
        const answer = await call("query", `_admin/data:${path}`, { table: "messages", ...args });
        assert.deepEqual([answer.status, answer.code], [400, code], `${path} ${JSON.stringify(args)}`);
      }
      const users = await ok("query", "_admin/data:documents", { table: "_users", paginationOpts });
      assert.equal(users.page[0].email, "ada@example.com");
    },
  );

  await t.step(
    "[SY22] invalid documents are rejected with an error by field, and nothing is stored",
    async () => {
      const wrong = { channel: 7, meta: { tags: "x" }, colour: "red" };
      const answer = await call("mutation", "_admin/data:insert", {
        table: "messages",
        documents: [{ channel: "c", body: "fits" }, wrong],
      });
      assert.deepEqual([answer.status, answer.code, answer.data.position], [400, "invalid_document", 1]);
      assert.deepEqual(
        answer.data.issues.map(({ path }: { path: string[] }) => path.join(".")).sort(),
        ["body", "channel", "colour", "meta.tags"],
      );
      assert.deepEqual(await bodies({ index: "by_channel", range: { eq: ["c"] } }), []);
      const { ids: [id] } = await ok("mutation", "_admin/data:insert", {
        table: "messages",
        documents: [{ channel: "c", body: "one" }],
      });
      const patched = await call("mutation", "_admin/data:patch", { id, set: { likes: "many" } });
      assert.deepEqual(patched.data.issues.map(({ path }: { path: string[] }) => path), [["likes"]]);
      const replaced = await call("mutation", "_admin/data:replace", { id, document: { channel: "c" } });
      assert.deepEqual(replaced.data.issues.map(({ path }: { path: string[] }) => path), [["body"]]);
      await ok("mutation", "_admin/data:patch", { id, set: { body: "two", likes: 5 } });
      await ok("mutation", "_admin/data:patch", { id, unset: ["likes"] });
      const { document, table } = await ok("query", "_admin/data:get", { id });
      assert.deepEqual([table, document.body, "likes" in document], ["messages", "two", false]);
      for (const table of ["_users", "_scheduled_functions", "_audit"]) {
        const refused = await call("mutation", "_admin/data:insert", { table, documents: [{}] });
        assert.equal(refused.code, "unknown_table", table);
      }
      for (const id of [world.userId, world.adminId]) {
        assert.equal((await call("mutation", "_admin/data:patch", { id, set: {} })).code, "unknown_table");
        assert.equal((await call("mutation", "_admin/data:remove", { ids: [id] })).code, "unknown_table");
      }
      assert.equal(
        (await call("mutation", "_admin/data:patch", { id: "x", set: {} })).code,
        "document_not_found",
      );
    },
  );

  await t.step(
    "[SY23] the second of two conflicting edits is rejected, and deleted documents can be restored",
    async () => {
      const { ids: [id] } = await ok("mutation", "_admin/data:insert", {
        table: "messages",
        documents: [{ channel: "d", body: "one", meta: { tags: ["x"] } }],
      });
      const seen = { body: "one", meta: { tags: ["x"] } };
      await ok("mutation", "_admin/data:patch", { id, set: { body: "first" }, seen });
      const second = await call("mutation", "_admin/data:patch", { id, set: { body: "second" }, seen });
      assert.deepEqual([second.code, second.data.field, second.data.document.body], [
        "document_changed",
        "body",
        "first",
      ]);
      await ok("mutation", "_admin/data:patch", {
        id,
        set: { likes: 1 },
        seen: { likes: { $missing: true } },
      });
      const absent = { id, set: { likes: 2 }, seen: { likes: { $missing: true } } };
      assert.equal((await call("mutation", "_admin/data:patch", absent)).code, "document_changed");
      const older = { ids: [id], seen: { [id]: { ...seen, body: "first", channel: "d" } } };
      assert.equal((await call("mutation", "_admin/data:remove", older)).data.field, "likes");
      const { documents: gone } = await ok("mutation", "_admin/data:remove", { ids: [id] });
      assert.equal(await ok("query", "_admin/data:get", { id }), null);
      await ok("mutation", "_admin/data:insert", { table: "messages", documents: gone });
      assert.deepEqual((await ok("query", "_admin/data:get", { id })).document, gone[0]);
      const half = await call("mutation", "_admin/data:remove", { ids: [id, "x"] });
      assert.equal(half.code, "document_not_found");
      assert.notEqual(await ok("query", "_admin/data:get", { id }), null);
      // Only replication stores earlier states, and those of secrets are never shown.
      assert.equal(await ok("action", "_admin/data:history", { id }), null);
      const secret = await call("action", "_admin/data:history", { id: world.adminId });
      assert.equal(secret.code, "unknown_table");
    },
  );

  await t.step("[SY24] a bulk deletion runs in steps and can be watched and canceled", async () => {
    const fill = async (channel: string) => {
      for (let round = 0; round < 3; round++) {
        await ok("mutation", "_admin/data:insert", {
          table: "messages",
          documents: Array.from({ length: 500 }, (_, i) => ({ channel, body: `${i}`, likes: i })),
        });
      }
    };
    await fill("many");
    const range = { index: "by_channel", range: { eq: ["many"] } };
    const half = { ...range, conditions: [{ field: "likes", op: "lt", value: 100 }] };
    const { workId } = await ok("action", "_admin/data:deleteWhere", { table: "messages", ...half });
    const work = await ended(world, workId);
    assert.deepEqual([work.state, work.changed, work.startedBy], ["done", 300, world.adminId]);
    const search = await ok("action", "_admin/data:deleteWhere", {
      table: "messages",
      search: { index: "search_body", text: "499" },
    });
    assert.equal((await ended(world, search.workId)).changed, 3);
    const rest = await ok("action", "_admin/data:deleteWhere", { table: "messages", ...range });
    assert.equal((await ended(world, rest.workId)).changed, 1197);
    assert.deepEqual(await bodies({ ...range }), []);
    assert.equal((await bodies({ index: "by_channel", range: { eq: ["a"] } })).length, 2, "others stay");
    const works = await ok("query", "_admin/work:list");
    assert.deepEqual(works.map(({ _id }: { _id: string }) => _id), [rest.workId, search.workId, workId]);
    await ok("mutation", "_admin/work:cancel", { workId });
    assert.equal((await ok("query", "_admin/work:get", { workId })).state, "done", "what has ended stays so");
    assert.equal(
      (await call("action", "_admin/data:deleteWhere", { table: "_users" })).code,
      "unknown_table",
    );
    assert.equal((await call("action", "_admin/data:deleteWhere", { table: "none" })).code, "unknown_table");
    const unfit = await ok("action", "_admin/data:deleteWhere", { table: "messages", index: "by_none" });
    assert.equal((await ended(world, unfit.workId)).state, "failed");
    assert.equal((await call("mutation", "_admin/work:cancel", { workId: "x" })).code, "work_not_found");
    await watchAndCancel(world, () => fill("some"));
  });

  await t.step("[SY25] functions are listed with the JSON Schemas of their arguments", async () => {
    const functions = await ok("query", "_admin/functions:list");
    const send = functions.find(({ path }: { path: string }) => path === "messages:send");
    assert.deepEqual([send.kind, send.visibility, send.args.required], ["mutation", "public", [
      "channel",
      "body",
    ]]);
    assert.equal(send.args.additionalProperties, false);
    assert.equal(
      functions.find(({ path }: { path: string }) => path === "messages:tick").visibility,
      "internal",
    );
    assert.ok(functions.every(({ path }: { path: string }) => !/^_(?:system|ctx)\//.test(path)));
  });

  await t.step(
    "[SY26] any function of the app runs under any identity, with result, log lines, reads and time",
    async () => {
      const run = (path: string, rest: object = {}) =>
        ok("action", "_admin/functions:run", { path, ...rest });
      const listed = await run("messages:list", { args: { channel: "a" } });
      assert.deepEqual([listed.kind, listed.result.value.length], ["query", 2]);
      assert.deepEqual(listed.logLines, ["[INFO] listing channel=a"]);
      assert.ok(listed.ms > 0 && listed.ts > 0);
      const read = listed.reads.find(({ index }: { index: string }) => index === "by_channel");
      assert.deepEqual([read.table, read.ranges], ["messages", 1]);
      assert.equal((await run("messages:secretCount")).result.ok, true, "internal ones too");
      const sent = await run("messages:send", {
        args: { channel: "z", body: "hi" },
        as: { userId: world.userId },
      });
      assert.equal(
        (await ok("query", "_admin/data:get", { id: sent.result.value })).document.author,
        world.userId,
      );
      assert.equal((await run("messages:who", { as: { userId: world.userId } })).result.value, world.userId);
      const refused = await run("messages:send", { args: { channel: "z", body: "" } });
      assert.deepEqual(refused.result.error.data, { code: "empty_message", data: { field: "body" } });
      assert.match(refused.result.error.stack, /messages\.ts/);
      const unfit = await run("messages:send", { args: {} });
      assert.equal(unfit.result.error.kind, "args");
      const answers: readonly (readonly [object, string])[] = [
        [{ path: "messages:none" }, "unknown_function"],
        [{ path: "_admin/users:list" }, "unknown_function"],
        [{ path: "messages:who", as: { userId: "x" } }, "user_not_found"],
        [{ path: "messages:who", as: { adminId: world.userId } }, "administrator_not_found"],
      ];
      for (const [args, code] of answers) {
        assert.equal((await call("action", "_admin/functions:run", args)).code, code, JSON.stringify(args));
      }
      assert.equal((await run("_system/auth:listAdmins")).result.error.kind, "unknown_function");
    },
  );

  await t.step(
    "[SY27] scheduled functions are listed, canceled and run now, and so are cron jobs",
    async () => {
      await schedule(world);
    },
  );

  await t.step(
    "[SY28] files are listed, previewed by a signed URL, searched for references, deleted",
    async () => {
      const upload = async (name: string, type: string) => {
        const url = await ok("mutation", "messages:uploadUrl", {}, world.user);
        const response = await fetch(`${server.url}${url}&filename=${name}`, {
          method: "POST",
          headers: { "Content-Type": type },
          body: name,
        });
        return (await response.json()).storageId as string;
      };
      const [cover, lonely] = [
        await upload("cover.png", "image/png"),
        await upload("notes.txt", "text/plain"),
      ];
      const { ids: [channel] } = await ok("mutation", "_admin/data:insert", {
        table: "channels",
        documents: [{ name: "covered", cover }],
      });
      const names = async (args: object = {}) =>
        (await ok("query", "_admin/files:list", { paginationOpts, ...args })).page
          .map(({ name }: { name: string }) => name);
      assert.deepEqual(await names(), ["notes.txt", "cover.png"]);
      assert.deepEqual(await names({ contentType: "image/" }), ["cover.png"]);
      assert.deepEqual(await names({ name: "NOTE" }), ["notes.txt"]);
      assert.deepEqual(await names({ createdBy: world.adminId }), []);
      assert.equal((await ok("query", "_admin/files:get", { fileId: cover })).createdBy, world.userId);
      const url = await ok("query", "_admin/files:url", { fileId: cover, ttlSeconds: 60 });
      assert.equal(await (await fetch(`${server.url}${url}`)).text(), "cover.png");
      const { references, more } = await ok("action", "_admin/files:references", { fileId: cover });
      assert.deepEqual([references, more], [[{
        fileId: cover,
        table: "channels",
        id: channel,
        field: "cover",
      }], false]);
      assert.deepEqual((await ok("action", "_admin/files:references", { fileId: lonely })).references, []);
      // A file counts as an orphan after an hour only.
      assert.deepEqual((await ok("action", "_admin/files:orphans")).fileIds, []);
      assert.deepEqual(await ok("mutation", "_admin/files:remove", { fileIds: [lonely, lonely] }), {
        deleted: 1,
      });
      assert.equal(
        await fetch(`${server.url}/api/storage/${lonely}`).then(async (response) => {
          await response.body?.cancel();
          return response.status;
        }),
        404,
      );
      const uploadUrl = await ok("mutation", "_admin/files:uploadUrl");
      const sent = await fetch(`${server.url}${uploadUrl}&filename=mine.txt`, {
        method: "POST",
        body: "mine",
      });
      const { storageId } = await sent.json();
      const mine = await ok("query", "_admin/files:get", { fileId: storageId });
      assert.deepEqual([mine.name, mine.createdBy], ["mine.txt", world.adminId]);
      const none = await call("mutation", "_admin/files:remove", { fileIds: [cover, lonely] });
      assert.equal(none.code, "file_not_found");
      assert.deepEqual(await names(), ["mine.txt", "cover.png"]);
    },
  );
});

/** Watches a deletion live and cancels it halfway. Deleted documents stay deleted. */
async function watchAndCancel({ ok, server, admin }: World, fill: () => Promise<void>): Promise<void> {
  const range = { table: "messages", index: "by_channel", range: { eq: ["some"] } };
  const left = async () =>
    (await ok("query", "_admin/data:documents", {
      ...range,
      paginationOpts: { ...paginationOpts, numItems: 2_000 },
    })).page.length;
  const client = new SynclineClient(server.url);
  client.setAuth(() => Promise.resolve(admin));
  try {
    for (let there = 0;;) {
      await fill();
      there += 1_500;
      const seen: { state: string; changed: number }[] = [];
      const { workId } = await ok("action", "_admin/data:deleteWhere", range);
      const over = Promise.withResolvers<void>();
      const stop = client.subscribe("_admin/work:get", { workId }, (work) => {
        seen.push(work as { state: string; changed: number });
        if (seen.at(-1)?.state !== "running") over.resolve();
      });
      await ok("mutation", "_admin/work:cancel", { workId });
      await over.promise;
      stop();
      const { state = "", changed = 0 } = seen.at(-1) ?? {};
      there -= changed;
      assert.equal(await left(), there, "it says how much is deleted");
      // On fast machines it may end before it is canceled.
      if (state === "done") continue;
      assert.equal(state, "canceled");
      assert.ok(there > 0);
      return;
    }
  } finally {
    client.close();
  }
}

async function schedule({ ok, call }: World): Promise<void> {
  const jobs = async (args: object = {}) =>
    (await ok("query", "_admin/schedule:jobs", { paginationOpts, ...args })).page;
  const [first, second] = [await ok("mutation", "messages:later"), await ok("mutation", "messages:later")];
  const waiting = await jobs({ state: "pending" });
  assert.deepEqual(waiting.map(({ jobId }: { jobId: string }) => jobId), [first, second]);
  assert.equal(waiting[0].name, "messages:tick");
  await ok("mutation", "_admin/schedule:cancelJob", { jobId: first });
  await ok("mutation", "_admin/schedule:runJobNow", { jobId: second });
  for (;;) if ((await jobs({ state: "pending" })).length === 0) break;
  const states = new Map((await jobs()).map((
    { jobId, state }: { jobId: string; state: { kind: string } },
  ) => [jobId, state.kind]));
  assert.deepEqual([states.get(first), states.get(second)], ["canceled", "success"]);
  for (
    const [path, jobId, code] of [
      ["cancelJob", second, "job_not_waiting"],
      ["runJobNow", first, "job_not_waiting"],
      ["runJobNow", "x", "job_not_found"],
      ["retryJob", second, "job_not_failed"],
    ] as const
  ) assert.equal((await call("mutation", `_admin/schedule:${path}`, { jobId })).code, code);
  const { jobId: again } = await ok("mutation", "_admin/schedule:retryJob", { jobId: first });
  // A second click does not run it twice.
  assert.equal((await ok("mutation", "_admin/schedule:retryJob", { jobId: first })).jobId, again);
  await until(async () => {
    const [retried] = (await jobs()).filter(({ jobId }: { jobId: string }) => jobId === again);
    return retried.state.kind === "success";
  });
  assert.deepEqual(await ok("query", "_admin/schedule:orphanedJobs"), { functions: [], complete: true });
  const cron = async () =>
    (await ok("query", "_admin/schedule:crons")).find(({ name }: { name: string }) => name === "tick");
  const before = await cron();
  assert.deepEqual([before.ofService, before.function, before.lastState.kind], [
    false,
    "messages:tick",
    "success",
  ]);
  const { jobId } = await ok("mutation", "_admin/schedule:runCronNow", { name: "tick" });
  for (;;) {
    if (
      (await jobs()).some((job: { jobId: string; state: { kind: string } }) =>
        job.jobId === jobId && job.state.kind === "success"
      )
    ) break;
  }
  const after = await cron();
  assert.ok(after.lastRun >= before.lastRun);
  assert.equal(after.nextRun, before.nextRun, "its beat stays");
  assert.equal(
    (await call("mutation", "_admin/schedule:runCronNow", { name: "none" })).code,
    "cron_not_found",
  );
  assert.ok(
    (await ok("query", "_admin/schedule:crons")).some(({ ofService }: { ofService: boolean }) => ofService),
  );
}
