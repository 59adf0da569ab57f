/** The built-in modules that app code may import, and stubs for the others. */
import type { IsolateRole } from "../../wire/messages.ts";

/** Modules without side effects, available everywhere. */
const pureModules: ReadonlySet<string> = new Set([
  "assert",
  "assert/strict",
  "buffer",
  "constants",
  "crypto",
  "events",
  "path",
  "path/posix",
  "path/win32",
  "punycode",
  "querystring",
  "stream",
  "stream/consumers",
  "stream/promises",
  "stream/web",
  "string_decoder",
  "url",
  "util",
  "util/types",
  "zlib",
]);

/** Network and timer modules, available in runners. */
const runnerModules: ReadonlySet<string> = new Set([
  "_http_agent",
  "_http_common",
  "_http_outgoing",
  "_http_server",
  "_stream_duplex",
  "_stream_passthrough",
  "_stream_readable",
  "_stream_transform",
  "_stream_writable",
  "_tls_common",
  "_tls_wrap",
  "dgram",
  "diagnostics_channel",
  "dns",
  "dns/promises",
  "http",
  "http2",
  "https",
  "net",
  "perf_hooks",
  "timers",
  "timers/promises",
  "tls",
]);

/** Whether app code in an isolate of this role gets the real module. `name` has no `node:` prefix. */
export function isOpenModule(name: string, role: IsolateRole): boolean {
  return pureModules.has(name) || (role === "runner" && runnerModules.has(name));
}

/** Error message when a stub is used. */
export function refusedMessage(name: string, role: IsolateRole): string {
  return role !== "runner" && runnerModules.has(name)
    ? `node:${name} is not available in queries and mutations: use it in an action`
    : `node:${name} is not available to app code`;
}

/** Harmless exports of blocked modules that packages use while loading, as JavaScript. `null` copies a constant. */
const harmlessParts: Readonly<Record<string, string | null>> = {
  "http.Agent": "class Agent{}",
  "http.METHODS": null,
  "http.STATUS_CODES": null,
  "http.globalAgent": "{}",
  "http.maxHeaderSize": null,
  "https.Agent": "class Agent{}",
  "https.globalAgent": "{}",
  "os.EOL": null,
  "tty.isatty": "()=>false",
  "worker_threads.isMainThread": null,
};

/** Source of a stub for a blocked module. Importing works, since every isolate loads all modules; using it throws. */
export function stubSource(
  name: string,
  { exports, message }: { readonly exports: Readonly<Record<string, unknown>>; readonly message: string },
): string {
  const named = Object.keys(exports).filter((exported) => exported !== "default").sort();
  const part = (exported: string): string => {
    const path = `${name}.${exported}`;
    if (!Object.hasOwn(harmlessParts, path)) return `r(${JSON.stringify(path)})`;
    return harmlessParts[path] ?? JSON.stringify(exports[exported]);
  };
  return [
    `const r=n=>function(){throw new TypeError(n+${JSON.stringify(`: ${message}`)})};`,
    ...named.map((exported) => `const ${local(exported)}=${part(exported)};`),
    `export{${named.map((exported) => `${local(exported)} as ${exported}`).join()}};`,
    `export default Object.assign(r(${JSON.stringify(name)}),{${
      named.map((exported) => `${exported}:${local(exported)}`).join()
    }});`,
  ].join("");
}

/** A name that is no reserved word. */
function local(exported: string): string {
  return `$${exported}`;
}
