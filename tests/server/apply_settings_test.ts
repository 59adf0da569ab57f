import assert from "node:assert/strict";
import { optionsOf, type ServeOptions } from "../../mod/config/options.ts";
import { applySettings, type SettableParts } from "../../mod/server/features/admin_functions.ts";

const values = Object.fromEntries(
  optionsOf("serve").map(([name, { default: value }]) => [name, value]),
) as unknown as ServeOptions;

Deno.test("SE1 SE5 SE8 SE10 settings reach every feature, and one that cannot use them does not affect the others", async () => {
  const reported: [string, unknown][] = [];
  const logged: unknown[] = [];
  const note = (part: string, what: unknown) => {
    reported.push([part, what]);
    return Promise.resolve();
  };
  const parts: SettableParts = {
    accounts: {
      configure: ({ policy }) => Promise.reject(new Error(`no sign-ups: ${!policy.signups}`)),
      configureExternalAuth: ({ authConfig }) => note("others", authConfig),
    },
    backups: { configure: (config) => note("backups", config?.everyMs) },
    alerts: { configure: ({ mail }, { app }) => void note("alerts", [app, ...mail]) },
    appNameOf: ({ appName }) => appName ?? "no name",
    executionLog: { configure: (settings) => void note("log", settings) },
    log: (level, message, fields) =>
      logged.push([level, message, fields?.["part"], String(fields?.["error"])]),
  };
  const settings = new Map([
    ["disableSignups", "true"],
    ["authConfig", "{}"],
    ["backupEvery", "1h"],
    ["appName", "Shop"],
    ["smtpUrl", "smtp://127.0.0.1:9"],
    ["mailFrom", "shop@example.com"],
    ["alertMail", "ops@example.com"],
    ["logKeep", "2d"],
    ["logMaxSize", "64MiB"],
  ]);
  await applySettings(settings, { values, explicit: new Map() }, parts);
  assert.deepEqual(reported, [
    ["others", { kind: "text", text: "{}" }],
    ["backups", 3_600_000],
    ["alerts", ["Shop", "ops@example.com"]],
    ["log", { keepMs: 2 * 86_400_000, bytesMax: 64 * 1024 ** 2 }],
  ]);
  assert.deepEqual(logged, [
    ["error", "Cannot apply settings", "accounts", "Error: no sign-ups: true"],
  ]);
  reported.length = 0;
  // A flag takes precedence, and a server without a log has none to change.
  const given = {
    values: { ...values, logKeep: null },
    explicit: new Map([["logKeep", { by: "flag", text: "off" }] as const]),
  };
  await applySettings(settings, given, parts);
  assert.deepEqual(reported.map(([part]) => part), ["others", "backups", "alerts"]);
});
