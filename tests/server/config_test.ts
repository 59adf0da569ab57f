import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { resolveConfig } from "../../mod/config/resolve_config.ts";
import { options, type ServeOptions } from "../../mod/config/options.ts";
import { VersionStore } from "../../mod/functions/versions/mod.ts";
import { StartError } from "../../mod/config/start_error.ts";
import { TempFolder } from "../support/temp_folder.ts";

const EXAMPLE = fileURLToPath(new URL("../../examples/chat", import.meta.url));

/** The defaults of the table, with changes. */
function serveOptions(changes: Partial<ServeOptions> = {}): ServeOptions {
  const defaults = Object.entries(options).map(([name, spec]) => [name, spec.default]);
  return { ...Object.fromEntries(defaults), ...changes };
}

/** Runs `body` in an empty folder, as a person would type the command there. */
async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  await using tempFolder = new TempFolder();
  const folder = tempFolder.path;
  const cwd = Deno.cwd();
  Deno.chdir(folder);
  try {
    await body(folder);
  } finally {
    Deno.chdir(cwd);
  }
}

Deno.test("[SF4] without an app a page without functions is served", async () => {
  await inFolder(async () => {
    const { example, empty, functionsDir, staticDir } = await resolveConfig(serveOptions());
    assert.deepEqual([example, empty, functionsDir], [false, true, staticDir]);
    assert.match(await Deno.readTextFile(join(staticDir ?? "", "index.html")), /deploy-key create/);
  });
});

Deno.test("[SF4] DP9 the version served last is served without an app, unless it is part of the server", async () => {
  await inFolder(async (folder) => {
    const versions = await VersionStore.open(join(folder, "data"));
    const served = async (functionsDir: string) => {
      const version = await versions.make({ functionsDir });
      await versions.served(version);
      return version.hash;
    };
    await Deno.mkdir("app/functions", { recursive: true });
    await Deno.writeTextFile("app/functions/notes.ts", "export {};");
    const hash = await served(join(folder, "app/functions"));
    const { functionsDir: emptyApp } = await resolveConfig(serveOptions({ data: "other" }));
    await served(emptyApp);
    await served(join(EXAMPLE, "functions"));
    const { deployed, empty, warnings } = await resolveConfig(serveOptions());
    assert.deepEqual([deployed, empty], [hash, false]);
    assert.match(
      warnings?.[0] ?? "",
      new RegExp(`^Nothing was deployed yet: serving version ${hash}, .*/app/functions"`),
    );
    assert.equal((await resolveConfig(serveOptions({ demo: true }))).deployed, null);
    // An older version does not replace one that a power failure has damaged.
    await Deno.writeTextFile(`data/versions/${hash}/version.json`, "");
    await assert.rejects(
      resolveConfig(serveOptions()),
      new RegExp(`${hash}.*\\. Start the server with --functions once`),
    );
    await Deno.mkdir("functions");
    assert.equal((await resolveConfig(serveOptions())).deployed, null);
  });
});

Deno.test("[SF4] with --demo and without an app the bundled example is served, page included", async () => {
  await inFolder(async (folder) => {
    const config = await resolveConfig(serveOptions({ demo: true }));
    assert.equal(config.example, true);
    assert.equal(config.functionsDir, join(EXAMPLE, "functions"));
    assert.equal(config.staticDir, join(EXAMPLE, "public"));
    assert.equal(config.dataDir, join(folder, "data"));
  });
});

Deno.test("[WK8] more processes than processors are allowed, with a warning", async () => {
  await inFolder(async () => {
    const processors = navigator.hardwareConcurrency;
    assert.deepEqual((await resolveConfig(serveOptions())).warnings, []);
    if (processors > 1) {
      assert.deepEqual((await resolveConfig(serveOptions({ workers: processors }))).warnings, []);
    }
    const { workers, warnings } = await resolveConfig(serveOptions({ workers: processors + 1 }));
    assert.equal(workers, processors + 1);
    assert.deepEqual(warnings, [
      `--workers ${
        processors + 1
      } exceeds the number of cores (${processors}): each worker costs memory without ` +
      "making the server faster",
    ]);
  });
});

Deno.test("OD2 the OpenAPI document is public with --public-openapi and with --dev only", async () => {
  await inFolder(async () => {
    const isPublic = async (changes: Partial<ServeOptions>) =>
      (await resolveConfig(serveOptions(changes))).publicOpenApi;
    assert.equal(await isPublic({}), false);
    assert.equal(await isPublic({ publicOpenapi: true }), true);
    assert.equal(await isPublic({ dev: true }), true);
  });
});

Deno.test("a folder ./functions is the app, and has no page unless one is named", async () => {
  await inFolder(async (folder) => {
    await Deno.mkdir("functions");
    const config = await resolveConfig(serveOptions());
    assert.deepEqual([config.example, config.functionsDir, config.staticDir], [
      false,
      join(folder, "functions"),
      null,
    ]);
    assert.equal((await resolveConfig(serveOptions({ static: "dist" }))).staticDir, join(folder, "dist"));
  });
});

Deno.test("a named functions folder must exist", async () => {
  await inFolder(async () => {
    await Deno.writeTextFile("file", "");
    for (const functions of ["nowhere", "file", "file/below"]) {
      await assert.rejects(resolveConfig(serveOptions({ functions })), (error) => {
        assert.ok(error instanceof StartError);
        assert.ok(error.message.includes(functions));
        return true;
      });
    }
  });
});

Deno.test("[OT1] options of the export are refused without its endpoint, and headers are URL-encoded", async () => {
  await inFolder(async () => {
    const exportOf = async (changes: Partial<ServeOptions>) =>
      (await resolveConfig(serveOptions(changes))).telemetry;
    assert.equal(await exportOf({}), null);
    const otlpHeaders = options.otlpHeaders.parse("Authorization=Bearer%20a=b, x-team=one");
    assert.deepEqual(await exportOf({ otlpEndpoint: "http://127.0.0.1:4318/otlp/", otlpHeaders }), {
      endpoint: "http://127.0.0.1:4318/otlp",
      headers: { authorization: "Bearer a=b", "x-team": "one" },
      sample: 1,
      signals: ["traces", "metrics", "logs"],
    });
    const otlpSignals = options.otlpSignals.parse("logs, traces");
    assert.deepEqual(otlpSignals, ["traces", "logs"]);
    assert.throws(
      () => options.otlpSignals.parse("traces,spans"),
      /expected a list such as traces,metrics,logs/,
    );
    for (const changes of [{ otlpSample: 0.5 }, { otlpHeaders }, { otlpSignals }]) {
      await assert.rejects(exportOf(changes), /need --otlp-endpoint/);
    }
    for (const text of ["Bearer token", "a b=c", "a=%zz", "a=%0a", "a="]) {
      assert.throws(() => options.otlpHeaders.parse(text), /expected headers such as/, text);
    }
    for (const text of ["http://127.0.0.1/?key=secret", "http://127.0.0.1/#x"]) {
      assert.throws(
        () => options.otlpEndpoint.parse(text),
        /^OptionValueError: expected a URL without a query/,
      );
    }
    for (const text of ["-1", "1.1", "", "x", "1e-9"]) {
      assert.throws(() => options.otlpSample.parse(text), /expected a number from 0 to 1/, text);
    }
    assert.equal(options.otlpSample.parse(".25"), 0.25);
  });
});

Deno.test("[ME3] a token of the metrics is refused without the metrics", async () => {
  await inFolder(async () => {
    const metricsOf = async (changes: Partial<ServeOptions>) =>
      (await resolveConfig(serveOptions(changes))).metrics;
    assert.equal(await metricsOf({}), null);
    assert.deepEqual(await metricsOf({ metrics: true }), { token: null });
    assert.deepEqual(await metricsOf({ metrics: true, metricsToken: "t" }), { token: "t" });
    await assert.rejects(metricsOf({ metricsToken: "t" }), (error) => {
      assert.ok(error instanceof StartError);
      assert.match(error.message, /--metrics-token needs --metrics/);
      return true;
    });
  });
});

Deno.test("the environment file is read by name, with quotes and comments", async () => {
  await inFolder(async () => {
    await Deno.writeTextFile("app.env", "# comment\nA=1\nexport B=\"two words\"\nC='x#y'\n\nEMPTY=\n");
    const { actionEnv } = await resolveConfig(serveOptions({ envFile: "app.env" }));
    assert.deepEqual(actionEnv, { A: "1", B: "two words", C: "x#y", EMPTY: "" });
    await assert.rejects(resolveConfig(serveOptions({ envFile: "missing.env" })), StartError);
  });
});

Deno.test("[SB9] backups are off without an interval, and are stored in the data folder by default", async () => {
  await inFolder(async (folder) => {
    const backups = async (changes: Partial<ServeOptions>) =>
      (await resolveConfig(serveOptions(changes))).backups;
    assert.equal(await backups({}), null);
    assert.deepEqual(await backups({ backupEvery: 3_600_000 }), {
      everyMs: 3_600_000,
      keep: 7,
      to: { kind: "folder", path: join(folder, "data/backups") },
    });
    const to = (path: string) => backups({ backupEvery: 3_600_000, backupTo: { kind: "folder", path } });
    assert.deepEqual((await to("../elsewhere"))?.to, { kind: "folder", path: join(folder, "../elsewhere") });
    for (const among of ["data", "data/storage", "data/outgoing/x"]) {
      await assert.rejects(to(among), /it is inside the data folder/, among);
    }
    await assert.rejects(
      backups({ backupTo: { kind: "folder", path: "x" } }),
      (error) =>
        error instanceof StartError &&
        /--backup-to needs a schedule: pass --backup-every/.test(error.message),
    );
    const bucket = { kind: "bucket", bucket: "backups", prefix: "" } as const;
    await assert.rejects(
      backups({ backupEvery: 3_600_000, backupTo: bucket }),
      /Backups in a bucket need access keys/,
    );
    const keys = { s3AccessKeyId: "id", s3SecretAccessKey: "key" };
    const remote = await backups({ backupEvery: 3_600_000, backupTo: bucket, ...keys });
    assert.deepEqual(remote?.to, {
      kind: "bucket",
      bucket: {
        bucket: "backups",
        prefix: "",
        region: "us-east-1",
        endpoint: null,
        accessKeyId: "id",
        secretAccessKey: "key",
      },
    });
  });
});
