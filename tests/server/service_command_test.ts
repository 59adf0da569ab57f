/** The command `service`: a service manager accepts its output, which starts the server. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { dockerfileText, installedProgram, unitText, writeService } from "../../mod/cli/service_command.ts";
import { Child } from "../support/processes/child.ts";
import { TempFolder } from "../support/temp_folder.ts";

const NPM = "/opt/node\n/opt/app/node_modules/syncline/bin/syncline.mjs";

Deno.test("NP13 the unit starts the installed version, with its own state folder and few permissions", async () => {
  await using folder = await TempFolder.with({});
  const installed = await installedProgram(undefined);
  assert.equal(installed.kind, "clone");
  const publicUrl = "https://app.example.com";
  await writeService("systemd", { installed, publicUrl, folder: folder.at() });
  const unit = await Deno.readTextFile(folder.at("syncline.service"));
  assert.match(unit, /^ProtectSystem=strict$/m);
  const [, command = ""] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
  const [program = "", ...args] = command.split(" ");
  assert.equal(program, Deno.execPath());
  const started = args.map((arg) => arg === "/var/lib/syncline" ? folder.at("data") : arg);
  await using server = new Child({ args: [...started, "--port", "0"] });
  await server.line(/https:\/\/app\.example\.com|http:\/\/127\.0\.0\.1:\d+/);
  await verified(folder.at("syncline.service"));
});

/** Validates with systemd's own program, if it is installed. */
async function verified(path: string): Promise<void> {
  const args = ["verify", "--man=no", path];
  const ended = await new Deno.Command("systemd-analyze", { args }).output().catch(() => null);
  if (ended === null) return;
  assert.doesNotMatch(
    new TextDecoder().decode(ended.stderr),
    /syncline\.service:\d+:|Unknown|Failed to parse/,
  );
}

Deno.test("NP13 the package's program, and one in one file, are started as they are", async () => {
  const npm = await installedProgram(NPM);
  const unit = unitText(npm, { publicUrl: null });
  assert.match(
    unit,
    /^ExecStart=\/opt\/node \/opt\/app\/node_modules\/syncline\/bin\/syncline\.mjs serve --data /m,
  );
  assert.match(unit, /^ProtectHome=yes$/m);
  assert.match(dockerfileText(npm), /^RUN npm install --global .* syncline@\d+\.\d+\.\d+ /m);
  const inHome = unitText({ kind: "file", command: ["/home/ada/my $app 100%/syncline"] }, {
    publicUrl: null,
  });
  assert.match(inHome, /^ExecStart="\/home\/ada\/my \$\$app 100%%\/syncline" serve /m);
  assert.match(inHome, /^ProtectHome=read-only$/m);
});

Deno.test("NP13 no file is overwritten, and no second one is added", async () => {
  await using folder = await TempFolder.with({ "compose.yaml": "mine" });
  const installed = await installedProgram(NPM);
  await assert.rejects(
    writeService("docker", { installed, publicUrl: null, folder: folder.at() }),
    /^StartError: Cannot write to "[^"]*": it already exists/,
  );
  assert.equal(await Deno.readTextFile(folder.at("compose.yaml")), "mine");
  await assert.rejects(Deno.stat(join(folder.at(), "Dockerfile")), Deno.errors.NotFound);
  await Deno.remove(folder.at("compose.yaml"));
  await writeService("docker", { installed, publicUrl: "https://a.example", folder: folder.at() });
  const compose = await Deno.readTextFile(folder.at("compose.yaml"));
  assert.match(compose, /SYNCLINE_PUBLIC_URL: "https:\/\/a\.example"/);
  assert.match(compose, /SYNCLINE_TRUSTED_PROXY: "172\.16\.0\.0\/12,/);
  await validated(folder.at("compose.yaml"));
});

/** By Docker Compose, where it is installed. It needs no daemon. */
async function validated(path: string): Promise<void> {
  for (const [program = "", ...args] of [["docker", "compose"], ["docker-compose"]]) {
    const command = new Deno.Command(program, { args: [...args, "-f", path, "config", "--quiet"] });
    let ended: Deno.CommandOutput;
    try {
      ended = await command.output();
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) continue;
      throw error;
    }
    const message = new TextDecoder().decode(ended.stderr);
    // Docker without the plugin knows neither command nor flag.
    if (!/unknown (?:shorthand flag|command)/.test(message)) assert.ok(ended.success, message);
  }
}
