/** Additions of `--dev` to a server: a separate frontend, and log lines of functions in the terminal. */
import assert from "node:assert/strict";
import { StartError } from "../../mod/config/start_error.ts";
import { resolveConfig } from "../../mod/config/resolve_config.ts";
import { optionsOf, type ServeOptions } from "../../mod/config/options.ts";
import { devFrontend } from "../../mod/server/dev/dev_frontend.ts";
import { type CallTrace, childTrace } from "../../mod/functions/call_trace.ts";
import { anonymous } from "../../mod/functions/identity.ts";
import { type Log, stderrLog } from "../../mod/kit/log.ts";
import { FunctionLogPrinter } from "../../mod/server/dev/function_log_printer.ts";
import { devLimits } from "../../mod/server/limits.ts";

Deno.test("DV2 requests reach the frontend unchanged, and its responses are returned", async () => {
  const asked: string[] = [];
  await using frontend = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const { pathname, search, host } = new URL(request.url);
      asked.push(`${request.method} ${pathname}${search} ${await request.text()} ${host}`);
      return new Response("here", { status: 203, headers: { "X-Own": "yes" } });
    },
  );
  const url = `http://127.0.0.1:${frontend.addr.port}`;
  const request = new Request("http://app.test/@vite/client?a=%2F", { method: "POST", body: "text" });
  const response = await devFrontend(url).respond(request, "/@vite/client");
  assert.deepEqual([response.status, response.headers.get("X-Own"), await response.text()], [
    203,
    "yes",
    "here",
  ]);
  assert.deepEqual(asked, [`POST /@vite/client?a=%2F text ${new URL(url).host}`]);
});

Deno.test("DV2 while the frontend does not answer it is 502, with its address", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const url = `http://127.0.0.1:${listener.addr.port}`;
  listener.close();
  const response = await devFrontend(url).respond(new Request("http://app.test/"), "/");
  assert.equal(response.status, 502);
  assert.match(await response.text(), new RegExp(url));
});

Deno.test("DV3 a frontend's dev server needs --dev, and there is only one frontend", async () => {
  const refused = (changes: Partial<ServeOptions>) =>
    assert.rejects(
      resolveConfig({ ...defaults(), devFrontend: "http://127.0.0.1:1", ...changes }),
      StartError,
    );
  await refused({ dev: false });
  await refused({ dev: true, static: "public" });
});

function defaults(): ServeOptions {
  return Object.fromEntries(
    optionsOf("serve").map(([name, spec]) => [name, spec.default]),
  ) as unknown as ServeOptions;
}

Deno.test("DV1 each log line appears once, with the function's name, and a flood is cut off", () => {
  const shown: string[] = [];
  let now = 1_000;
  // Telemetry exports the lines itself: the printer must not write copies.
  const stderrOnly: Log = (level, message) => void shown.push(`${level} ${message}`);
  const log = Object.assign((() => assert.fail("forwarded")) as Log, { stderrOnly });
  const lines = new FunctionLogPrinter(log, () => now);
  const ended = (
    udfPath: string,
    { logLines, ...call }: { logLines: string[]; trace?: CallTrace; origin?: "server" },
  ) =>
    lines.runEnded("query", {
      call: { udfPath, identity: anonymous, ...call },
      outcome: { ok: true, value: "null", logLines },
    });
  const trace = lines.startTrace();
  assert.equal(trace.sampled, false);
  ended("notes:inner", { trace: childTrace(trace), origin: "server", logLines: ["[WARN] inside"] });
  ended("notes:outer", {
    trace,
    logLines: ["[INFO] before", "[WARN] inside", "[ERROR] two\nlines\u001b[2J"],
  });
  ended("notes:other", { logLines: ["[WARN] inside"] });
  assert.deepEqual(shown, [
    "warn notes:inner: inside",
    "info notes:outer: before",
    "error notes:outer: two\n    lines?[2J",
    "warn notes:other: inside",
  ]);
  shown.length = 0;
  now = 2_000;
  const flood = Array.from({ length: 2 * devLimits.linesPerSecondMax }, (_, at) => `[INFO] ${at}`);
  ended("notes:flood", { logLines: flood });
  ended("notes:flood", { logLines: flood });
  assert.equal(shown.length, devLimits.linesPerSecondMax + 1);
  assert.match(shown.at(-1) ?? "", /See the dashboard for all lines/);
  now = 3_000;
  ended("notes:calm", { logLines: ["[INFO] again"] });
  assert.equal(shown.at(-1), "info notes:calm: again");
});

Deno.test("[OT7] a log without its receivers writes only to standard error", () => {
  const log = stderrLog({ debug: true });
  const copied: string[] = [];
  log.receivers?.add(({ message }) => copied.push(message));
  log.stderrOnly?.("debug", "from a function");
  log("debug", "from the server");
  assert.deepEqual(copied, ["from the server"]);
});
