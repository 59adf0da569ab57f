/**
 * A real S3 server for tests: OpenStack Swift with its S3 interface, from Debian's packages swift-proxy, swift-account,
 * swift-container, swift-object and memcached.
 */
import { join } from "node:path";
import { freePort } from "../../support/ports.ts";
import { until } from "../../support/waiting.ts";

/** Debian's Python, which finds the packages of Swift. */
const PYTHON = "/usr/bin/python3";
/** Writes the ring files, instead of nine slow commands of swift-ring-builder. */
const RINGS = `
import sys
from swift.common.ring import RingBuilder
for name, port in zip(sys.argv[1::2], sys.argv[2::2]):
    builder = RingBuilder(4, 1, 1)
    builder.add_dev({"region": 1, "zone": 1, "ip": "127.0.0.1", "port": int(port), "device": "d1", "weight": 1})
    builder.rebalance()
    builder.get_ring().save(f"{name}.ring.gz")
`;
const decoder = new TextDecoder();

/** Configuration shared by the back ends; `%` are their name and port. */
const backEnd = (name: string, { port, user, dir }: { port: number; user: string; dir: string }) => `
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
user = ${user}
swift_dir = ${dir}
devices = ${dir}/srv
mount_check = false
workers = 0
log_level = ERROR
disable_fallocate = true
[pipeline:main]
pipeline = ${name}-server
[app:${name}-server]
use = egg:swift#${name}
recon_cache_path = ${dir}
[${name}-replicator]
[${name}-updater]
[${name}-auditor]
`;

const filters = [
  "catch_errors",
  "gatekeeper",
  "healthcheck",
  "listing_formats",
  "bulk",
  "s3api",
  "tempauth",
  "copy",
  "slo",
  "dlo",
];

const proxy = ({ port, cache, user, dir }: { port: number; cache: number; user: string; dir: string }) => `
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
user = ${user}
swift_dir = ${dir}
workers = 0
log_level = ERROR
[pipeline:main]
pipeline = cache ${filters.join(" ")} proxy-server
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:${cache}
${filters.map((name) => `[filter:${name}]\nuse = egg:swift#${name}\n${extra[name] ?? ""}`).join("\n")}
`;

const extra: Record<string, string> = {
  tempauth: "user_test_tester = testing .admin",
  s3api: "s3_acl = false\ncheck_bucket_owner = false\nlocation = us-east-1",
};

/** Variable with the ports of a server that all files of a run share. */
const SHARED = "SYNCLINE_TEST_S3";

interface Ports {
  readonly proxy: number;
  readonly backEnds: readonly number[];
}

export class SwiftServer implements AsyncDisposable {
  readonly accessKeyId = "test:tester";
  readonly secretAccessKey = "testing";
  readonly #ports: Ports;
  /** `null` if the server is shared. */
  readonly #own: { readonly dir: string; readonly children: readonly Deno.ChildProcess[] } | null;

  private constructor(ports: Ports, own: { dir: string; children: Deno.ChildProcess[] } | null) {
    this.#ports = ports;
    this.#own = own;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#ports.proxy}`;
  }

  /** Returns the shared server of the run, or starts one. Buckets need unique names. */
  static async start(): Promise<SwiftServer> {
    const shared = Deno.env.get(SHARED);
    const server = shared === undefined
      ? await SwiftServer.launch()
      : new SwiftServer(JSON.parse(shared), null);
    try {
      await server.#ready();
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Starts a server without waiting for it. */
  static async launch(): Promise<SwiftServer> {
    const dir = await Deno.makeTempDir();
    await Deno.mkdir(join(dir, "srv", "d1"), { recursive: true });
    const user = decoder.decode((await new Deno.Command("id", { args: ["-un"] }).output()).stdout).trim();
    const write = (name: string, text: string) => Deno.writeTextFile(join(dir, name), text);
    await write(
      "swift.conf",
      "[swift-hash]\nswift_hash_path_prefix = a\nswift_hash_path_suffix = b\n[storage-policy:0]\nname = default\ndefault = yes\n",
    );
    const ports = ["account", "container", "object"].map((name) => [name, freePort()] as const);
    const [port, cache] = [freePort(), freePort()];
    const rings = await new Deno.Command(PYTHON, {
      args: ["-c", RINGS, ...ports.flat().map(String)],
      cwd: dir,
      stdin: "null",
    }).output();
    if (!rings.success) throw new Error(`The rings cannot be built: ${decoder.decode(rings.stderr)}`);
    const children: Deno.ChildProcess[] = [];
    const run = (program: string, args: string[]) =>
      children.push(
        new Deno.Command(program, {
          args,
          env: { SWIFT_DIR: dir },
          stdin: "null",
          stdout: "null",
          stderr: "null",
        }).spawn(),
      );
    run("memcached", ["-u", user, "-l", "127.0.0.1", "-p", String(cache), "-m", "16"]);
    for (const [name, port] of ports) {
      await write(`${name}.conf`, backEnd(name, { port, user, dir }));
      run(`swift-${name}-server`, [join(dir, `${name}.conf`)]);
    }
    await write("proxy.conf", proxy({ port, cache, user, dir }));
    run("swift-proxy-server", [join(dir, "proxy.conf")]);
    return new SwiftServer({ proxy: port, backEnds: ports.map(([, port]) => port) }, { dir, children });
  }

  /** Environment variables with which test processes share this server. */
  get env(): Readonly<Record<string, string>> {
    return { [SHARED]: JSON.stringify(this.#ports) };
  }

  /** The proxy rejects requests until its back ends are up. */
  async #ready(): Promise<void> {
    const listens = (port: number) =>
      Deno.connect({ hostname: "127.0.0.1", port }).then((conn) => (conn.close(), true), () => false);
    const health = () =>
      fetch(`${this.endpoint}/healthcheck`).then((response) => response.text()).catch(() => "");
    const isUp = async () =>
      (await Promise.all(this.#ports.backEnds.map(listens))).every(Boolean) && await health() === "OK";
    await until(isUp, {
      what: "Swift is up",
      everyMs: 100,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#own === null) return;
    for (const child of this.#own.children) {
      try {
        child.kill("SIGKILL");
      } catch {
        // It has exited already.
      }
      await child.status;
    }
    await Deno.remove(this.#own.dir, { recursive: true });
  }
}
