/** `syncline conformance`: our clients pass, and clients with a fault do not. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { conformance, runConformance } from "../../mod/npm/conformance/run.ts";
import { codeBlocks } from "../docs/pages.ts";
import { isRunning } from "../support/processes/process_tree.ts";
import { needs, onPath } from "../support/services.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { until } from "../support/waiting.ts";

const folder = new URL("../../mod/npm/conformance/scenarios/", import.meta.url);

/** Runs the kit. Returns its lines. */
async function run(
  driver: readonly string[],
  only: readonly string[] = [],
  stepMs?: number,
): Promise<{ readonly passed: boolean; readonly lines: readonly string[] }> {
  const lines: string[] = [];
  const print = (line: string) => void lines.push(line);
  const passed = await runConformance({
    folder,
    driver,
    only,
    print,
    ...(stepMs !== undefined && { stepMs }),
  });
  return { passed, lines };
}

const scenarios = [...Deno.readDirSync(folder)].length;

Deno.test("[WS19] the JavaScript client passes all scenarios of the conformance kit", async () => {
  const program = fileURLToPath(new URL("support/conformance_driver.ts", import.meta.url));
  const driver = [Deno.execPath(), "run", "--no-prompt", "--quiet", "--no-check", "-P=test", program];
  const { passed, lines } = await run(driver, [], 60_000);
  assert.ok(passed, lines.join("\n"));
  assert.equal(lines.filter((line) => line.startsWith("ok ")).length, scenarios, lines.join("\n"));
});

const python = { name: "python3", find: () => onPath("python3"), hint: "a package of the system" };

/** Writes the client and the driver of the page about the protocol. */
async function pythonDriver(change = (text: string) => text): Promise<TempFolder> {
  const blocks = (await codeBlocks("docs/protocol.md")).filter(({ language }) => language === "python");
  const files = blocks.map(({ text }) => {
    const [, name = ""] = /^# (\S+)\n/.exec(text) ?? [];
    return [name, change(text)] as const;
  });
  return await TempFolder.with(Object.fromEntries(files));
}

Deno.test({
  ...needs(python, "[WS19] the client in Python passes the scenarios of the conformance kit without diffs"),
  async fn() {
    await using files = await pythonDriver();
    const { passed, lines } = await run(["python3", files.at("driver.py")], [], 60_000);
    assert.ok(passed, lines.join("\n"));
    assert.match(lines.join("\n"), /skipped {2}diffs: .* \(without the feature diffs\)/);
    assert.equal(lines.filter((line) => line.startsWith("ok ")).length, scenarios - 1);
  },
});

Deno.test({
  ...needs(python, "[WS19] faults of a client are found, with the line of the scenario"),
  async fn() {
    // Each is found by a frame: a missing one would be found by a timeout.
    const faults: readonly (readonly [scenario: string, from: string, to: string, report: RegExp])[] = [
      // Mutations after a cut are new calls.
      [
        "resend",
        "            self.send(message)\n",
        '            self.send({**message, "requestId": message["requestId"] + 9})\n',
        /line 21: The client sent .* requestId is 10 instead of 1/,
      ],
      [
        "restart",
        '"maxObservedTs": self.seen',
        '"maxObservedTs": 0',
        /line 14: .*maxObservedTs is 0 instead of 6/,
      ],
      [
        "subscribe",
        '"baseVersion": self.query_set - 1',
        '"baseVersion": 0',
        /line 11: baseVersion should be 1/,
      ],
      [
        "subscribe",
        "value=value),",
        "value=value[::-1] if isinstance(value, list) else value),",
        /line 15: .*"value":\[4,3\]/,
      ],
      [
        "subscribe",
        "        self.query_id += 1\n",
        "        self.query_id = max(self.queries, default=0) + 1\n",
        /line 29: queryId 3 belonged to another query/,
      ],
      ["arguments", "value=value),", 'value={**value, "old": 1}),', /line 7: .*"old":1\} instead of/],
      [
        "arguments",
        '"udfPath": path, "args": args}\n        self.queries',
        '"udfPath": path, "args": {**args, "more": 1}}\n        self.queries',
        /line 5: .*"more":1\}/,
      ],
      ["lost_action", 'if message["type"] == "Action"]', "if False]", /An action is not sent again/],
    ];
    await Promise.all(faults.map(async ([scenario, from, to, report]) => {
      await using files = await pythonDriver((text) => text.replace(from, to));
      const { passed, lines } = await run(["python3", files.at("driver.py")], [scenario], 60_000);
      assert.equal(passed, false, `${scenario}: ${to}`);
      assert.match(lines.join("\n"), report, `${scenario}\n${lines.join("\n")}`);
    }));
    const { lines } = await run(["python3", "-c", "exit(3)"], ["keepalive"]);
    assert.match(lines.join("\n"), /The driver ended with exit code 3/);
    await assert.rejects(run(["python3"], ["none"]), /There is no scenario "none"\. Known: actions, /);
  },
});

Deno.test({
  ...needs(python, "[WS19] unprompted Pongs and a client without maxObservedTs pass"),
  async fn() {
    await using files = await pythonDriver((text) =>
      text.replace(', "maxObservedTs": self.seen', "")
        .replace(
          "        self.modify([query for",
          '        self.send({"type": "Pong"})\n        self.modify([query for',
        )
    );
    const { passed, lines } = await run(["python3", files.at("driver.py")], ["keepalive", "restart"], 60_000);
    assert.ok(passed, lines.join("\n"));
  },
});

Deno.test("[WS19] processes that a driver started end with the scenario", async () => {
  await using files = await TempFolder.with({});
  const file = files.at("pid");
  const { lines } = await run(["sh", "-c", `sleep 1000 & echo $! > ${file}; exit 3`], ["keepalive"], 60_000);
  assert.match(lines.join("\n"), /The driver ended with exit code 3/);
  const pid = Number(await Deno.readTextFile(file));
  await until(async () => !await isRunning(pid));
});

Deno.test("[WS19] invalid options of the command end with exit code 2", async () => {
  assert.equal(await conformance(["--help"], folder), 0);
  for (
    const args of [["--unknown"], ["--unknown", "--", "true"], ["--only=none", "--", "true"], ["--only"], []]
  ) {
    assert.equal(await conformance(args, folder), 2, args.join(" "));
  }
  assert.equal(await conformance(["--only=keepalive", "--", "false"], folder), 1);
});
