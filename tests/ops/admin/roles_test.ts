/** Access of viewers, editors and owners: every admin function and endpoint that the server registers is in the table. */
import assert from "node:assert/strict";
import { optionsOf, type ServeOptions } from "../../../mod/config/options.ts";
import { type AdminRole, adminRoles } from "../../../mod/functions/admin_roles.ts";
import { watchFeatures } from "./support/registry.ts";
import { type Kind, startWorld } from "./support/world.ts";

/** By the least role that may call them. */
const FUNCTIONS: Readonly<Record<AdminRole, Readonly<Record<string, readonly string[]>>>> = {
  viewer: {
    "administrators": [
      ...[
        "changePassword",
        "confirmPassword",
        "confirmTotp",
        "endOwnSessions",
        "list",
        "me",
        "proveFactor",
        "removeTotp",
      ],
      ...["renewRecoveryCodes", "sessions", "startTotp"],
      ...[
        "startPasskey",
        "addPasskey",
        "startPasskeyProof",
        "provePasskey",
        "renamePasskey",
        "removePasskey",
      ],
    ],
    "alerts": ["issues", "notes"],
    "apiKeys": ["list"],
    "audit": ["list"],
    "data": [
      "choices",
      "count",
      "documents",
      "get",
      "history",
      "labels",
      "position",
      "sizes",
      "tableOf",
      "tables",
    ],
    "files": ["get", "list", "orphans", "references", "url"],
    "functions": ["list"],
    "migrations": ["list"],
    "schedule": ["crons", "jobs", "orphanedJobs"],
    "schema": ["get"],
    "settings": ["environment", "list", "previewMail", "providers"],
    "users": ["emails", "get", "list"],
    "views": ["list", "remove", "save"],
    "work": ["get", "list"],
  },
  editor: {
    "alerts": ["acknowledge", "mute", "resume", "test"],
    "data": ["deleteWhere", "insert", "patch", "patchMany", "remove", "replace"],
    "files": ["remove", "uploadUrl"],
    "functions": ["console", "run", "watch"],
    "migrations": ["begin", "halt", "run", "step", "tryOut"],
    "schedule": ["cancelJob", "retryJob", "runCronNow", "runJobNow"],
    "users": [
      ...[
        "create",
        "edit",
        "endSession",
        "endSessions",
        "remove",
        "removeFactors",
        "removePasskey",
        "sendReset",
      ],
      ...["sendVerification", "setPassword"],
    ],
    "views": ["saveQuery"],
    "work": ["cancel", "forget"],
  },
  owner: {
    "administrators": ["create", "endSession", "endSessions", "remove", "removeFactors", "setRole"],
    "apiKeys": ["create", "revoke"],
    "env": ["list", "set"],
    "settings": ["set", "testBucket", "testMail", "testProvider"],
  },
};

const ENDPOINTS = {
  viewer: [
    "GET /backups",
    "GET /cluster",
    "GET /export/:table",
    "GET /functions/versions",
    "GET /import",
    "GET /live",
    "GET /logs",
    "GET /logs/stream",
    "GET /replication",
    "GET /restore",
    "GET /restore/restart",
    "GET /scheduled-backups",
    "GET /stats",
    "GET /stats/trend",
    "POST /export/:table",
  ],
  editor: [
    "GET /functions/versions/:hash/bundle",
    "POST /backups",
    "POST /backups/:name/verify",
    "POST /functions/rollback",
    "POST /impersonate",
    "POST /import/:table",
    "POST /places/:name/check",
    "POST /replication/snapshot",
    "POST /scheduled-backups/:name/verify",
    "POST /scheduled-backups/check",
    "PUT /functions",
  ],
  owner: [
    "DELETE /backups/:name",
    "DELETE /restore",
    "GET /backups/:name",
    "GET /functions/env",
    "GET /restore/export/:table",
    "GET /scheduled-backups/:name",
    "PATCH /functions/env",
    "POST /backups/:name/export/:table",
    "POST /backups/:name/restore",
    "POST /restore",
    "POST /restore/point-in-time",
    "POST /restore/point-in-time/export/:table",
    "POST /restore/restart",
    "POST /scheduled-backups/:name/export/:table",
    "POST /scheduled-backups/:name/restore",
  ],
} as const;

const functionsOf = (role: AdminRole) =>
  Object.entries(FUNCTIONS[role]).flatMap(([subject, names]) =>
    names.map((name) => `_admin/${subject}:${name}`)
  )
    .toSorted();

Deno.test("AD15 roles of administrators", async (t) => {
  using registry = watchFeatures();
  const values = Object.fromEntries(
    optionsOf("serve").map(([name, { default: value }]) => [name, value]),
  ) as unknown as ServeOptions;
  const smtpUrl = { by: "env", text: "smtp://given:secret@mail.example.com:25" } as const;
  const explicitOptions = { values, explicit: new Map([["smtpUrl", smtpUrl] as const]) };
  await using world = await startWorld({
    config: { restartExitCode: 75, explicitOptions },
    onRestart: () => {},
  });
  const { server, call, ok } = world;
  const { routes, actions } = registry;
  const listed: { path: string; kind: Kind; visibility: string }[] = await ok(
    "query",
    "_admin/functions:list",
  );
  const kinds = new Map<string, Kind>([
    ...listed.filter(({ visibility }) => visibility === "admin").map(({ path, kind }) =>
      [path, kind] as const
    ),
    // The other one is for the command line.
    ...actions.filter((path) => path !== "_admin/mcp:handle").map((path) => [path, "action"] as const),
  ]);
  const tokens: Record<string, string> = {};
  for (const role of ["viewer", "editor"] as const) {
    const account = { email: `${role}@example.com`, password: "correct horse battery" };
    await ok("action", "_admin/administrators:create", { ...account, role });
    tokens[role] = (await world.signInAdmin(account.email)).accessToken;
  }

  await t.step("the table has every function and endpoint", () => {
    assert.deepEqual(adminRoles.flatMap(functionsOf).toSorted(), [...kinds.keys()].toSorted());
    const known = routes.map(({ method, path }) =>
      `${method} ${path.replace("/api/admin", "").replaceAll(/\{[^}]*\}/g, "")}`
    );
    assert.deepEqual(
      adminRoles.flatMap((role) => [...ENDPOINTS[role]]).toSorted(),
      [...new Set(known)].toSorted(),
    );
  });

  for (const role of ["viewer", "editor"] as const) {
    const bearer = tokens[role] ?? "";
    const isAllowed = (required: AdminRole) => adminRoles.indexOf(required) <= adminRoles.indexOf(role);

    await t.step(`functions of a ${role}`, async () => {
      for (const required of adminRoles) {
        for (const path of functionsOf(required)) {
          // Invalid arguments, so that the calls have no effect: the role is checked first.
          const { status, code } = await call(kinds.get(path) ?? "query", path, { wrong: true }, bearer);
          assert.equal(code === "role_required", !isAllowed(required), `${path}: ${status} ${code}`);
        }
      }
    });

    await t.step(`endpoints of a ${role}`, async () => {
      for (const required of adminRoles) {
        for (const endpoint of ENDPOINTS[required]) {
          const [method = "", path = ""] = endpoint.split(" ");
          const response = await fetch(`${server.url}/api/admin${path.replaceAll(/:\w+/g, "none")}`, {
            method,
            headers: { Authorization: `Bearer ${bearer}` },
          });
          await response.body?.cancel();
          assert.equal(response.status === 403, !isAllowed(required), `${endpoint}: ${response.status}`);
        }
      }
    });
  }

  await t.step("MC1 editors connect agents, viewers do not", async () => {
    const message = { jsonrpc: "2.0", id: 1, method: "ping" };
    for (const [role, expected] of [["viewer", 403], ["editor", 200]] as const) {
      const headers = {
        "Accept": "application/json, text/event-stream",
        "Authorization": `Bearer ${tokens[role]}`,
        "Content-Type": "application/json",
      };
      const body = JSON.stringify(message);
      const response = await fetch(`${server.url}/api/mcp?write=true`, { method: "POST", headers, body });
      await response.body?.cancel();
      assert.equal(response.status, expected, role);
    }
  });

  await t.step("[SE3] viewers see the mail server without its user", async () => {
    await ok("action", "_admin/settings:set", {
      changes: { smtpUrl: "smtp://user:secret@mail.example.com:587", mailFrom: "app@example.com" },
    });
    const urlsFor = async (role: string) => {
      const { value } = await call("query", "_admin/settings:list", {}, tokens[role]);
      const { text, given } = value.find(({ name }: { name: string }) => name === "smtpUrl");
      return [text, given.text];
    };
    assert.deepEqual(await urlsFor("viewer"), ["smtp://mail.example.com:587", "smtp://mail.example.com:25"]);
    assert.deepEqual(await urlsFor("editor"), [
      "smtp://user@mail.example.com:587",
      "smtp://given@mail.example.com:25",
    ]);
  });

  await t.step("a viewer can end only their own other sessions", async () => {
    const other = (await world.signInAdmin("viewer@example.com")).accessToken;
    assert.equal(
      (await call("mutation", "_admin/administrators:endOwnSessions", {}, tokens["viewer"])).status,
      200,
    );
    const me = async (bearer: string | undefined) =>
      (await call("query", "_admin/administrators:me", {}, bearer)).status;
    assert.notEqual(await me(other), 200);
    assert.deepEqual([await me(tokens["viewer"]), await me(tokens["editor"])], [200, 200]);
  });

  await t.step("a changed role takes effect immediately", async () => {
    const admins: { adminId: string; email: string }[] = await ok("query", "_admin/administrators:list");
    const adminId = admins.find(({ email }) => email === "editor@example.com")?.adminId ?? "";
    const insert = () =>
      call(
        "mutation",
        "_admin/data:insert",
        { table: "channels", documents: [{ name: "x" }] },
        tokens["editor"],
      );
    assert.equal((await insert()).status, 200);
    await ok("mutation", "_admin/administrators:setRole", { adminId, role: "viewer" });
    assert.equal((await insert()).code, "role_required");
    await ok("mutation", "_admin/administrators:setRole", { adminId, role: "owner" });
    assert.equal((await insert()).status, 200);
  });

  await t.step("the last owner stays an owner, and cannot be removed", async () => {
    const admins: { adminId: string; email: string }[] = await ok("query", "_admin/administrators:list");
    const idOf = (name: string) => admins.find(({ email }) => email.startsWith(name))?.adminId ?? "";
    await ok("mutation", "_admin/administrators:setRole", { adminId: idOf("editor"), role: "editor" });
    const demoted = await call("mutation", "_admin/administrators:setRole", {
      adminId: idOf("root"),
      role: "viewer",
    });
    assert.equal(demoted.code, "last_owner");
    const removed = await call("mutation", "_admin/administrators:remove", { adminId: idOf("root") });
    assert.equal(removed.code, "last_owner");
  });
});
