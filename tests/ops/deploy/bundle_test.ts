/** Bundles: everything not allowed is rejected without leftovers. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createTarPacker, type TarEntry } from "modern-tar";
import { hashOf } from "../../../mod/functions/versions/mod.ts";
import {
  BundleError,
  type BundleManifest,
  type ManifestOptions,
} from "../../../mod/ops/deploy/bundle/bundle_manifest.ts";
import { oneName, unpackBundle } from "../../../mod/ops/deploy/bundle/unpack.ts";
import { deployLimits } from "../../../mod/ops/limits.ts";
import { bundleOf, firstApp } from "./support.ts";

type Header = TarEntry["header"];

const text = "export {};\n";
const file = {
  bytes: text.length,
  sum: createHash("sha256").update(text).digest("hex"),
};

/** A manifest with its own hash. */
function manifestOf(changes: Partial<BundleManifest> = {}): BundleManifest {
  const content = {
    functions: "functions",
    files: { "bundle.js": file },
    madeFrom: "/home/ada/app",
    ...changes,
  };
  return { hash: hashOf(content), ...content };
}

interface Entry extends Partial<Header> {
  readonly name: string;
  readonly text?: string;
}

async function packed(entries: readonly Entry[]): Promise<Uint8Array<ArrayBuffer>> {
  const { readable, controller } = createTarPacker();
  const done = (async () => {
    for (const { text = "", ...header } of entries) {
      const bytes = new TextEncoder().encode(text);
      const body = controller.add({ size: bytes.length, ...header }).getWriter();
      if (bytes.length > 0) await body.write(bytes);
      await body.close();
    }
    controller.finalize();
  })();
  const gzip = (readable as ReadableStream<Uint8Array<ArrayBuffer>>).pipeThrough(
    new CompressionStream("gzip"),
  );
  const bytes = new Uint8Array(await new Response(gzip).arrayBuffer());
  await done;
  return bytes;
}

async function refusal(bytes: Uint8Array<ArrayBuffer>, options: ManifestOptions = {}): Promise<string> {
  const folder = await Deno.makeTempDir();
  try {
    await unpackBundle(new Blob([bytes]).stream(), folder, options);
    return "";
  } catch (error) {
    assert.ok(error instanceof BundleError, String(error));
    return error.message;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const manifestEntry = (manifest: unknown): Entry => ({
  name: "version.json",
  text: JSON.stringify(manifest),
});
const codeEntry = { name: "code/bundle.js", text };

Deno.test("DP6 a bundle is unpacked according to its manifest", async () => {
  const folder = await Deno.makeTempDir();
  const bytes = await packed([manifestEntry(manifestOf()), codeEntry]);
  const manifest = await unpackBundle(new Blob([bytes]).stream(), folder);
  assert.deepEqual(manifest, manifestOf());
  assert.equal(await Deno.readTextFile(`${folder}/bundle.js`), text);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("DP6 names and paths that leave the bundle are rejected", async (t) => {
  const paths = [
    "/etc/passwd",
    "../a.ts",
    "functions/../../a.ts",
    "functions//a.ts",
    "functions/./a.ts",
    "functions/a\u0000.ts",
    "functions\\a.ts",
    `functions/${"a".repeat(deployLimits.pathCharsMax)}`,
  ];
  const cases: Record<string, Partial<BundleManifest>> = {
    ...Object.fromEntries(paths.map((path) => [`file ${path.slice(0, 40)}`, { files: { [path]: file } }])),
    "functions folder": { functions: ".." },
    "frontend": { static: "/" },
    "file in the way of a folder": { files: { "functions/a": file, "functions/a/b.ts": file } },
    "frontend without files": { static: "public" },
    "frontend that is a file": { static: "bundle.js" },
    "no bundle": { files: { "functions/a.ts": file } },
  };
  for (const [name, changes] of Object.entries(cases)) {
    await t.step(name, async () => {
      const message = await refusal(await packed([manifestEntry(manifestOf(changes)), codeEntry]));
      assert.match(
        message,
        /leads out of|another version|which is not a folder|has no files|too big|Too big|is invalid/,
        message,
      );
    });
  }
});

Deno.test("a bundle of sources is accepted from servers only, without links", async () => {
  const old = {
    files: { "functions/a.ts": file },
    code: { files: {}, scopes: {}, table: { files: {}, required: [], deferred: [], refusals: {} } },
  };
  const bytes = (links: Record<string, string>) =>
    packed([manifestEntry(manifestOf({ ...old, links })), { name: "code/functions/a.ts", text }]);
  assert.equal(await refusal(await bytes({}), { sources: true }), "");
  const linked = await bytes({ "functions/b.ts": "functions/a.ts" });
  assert.match(await refusal(linked, { sources: true }), /another version of Syncline/);
  assert.match(await refusal(await bytes({})), /another version of Syncline/);
});

Deno.test("DP13 a frontend without files to serve is not packed", async () => {
  await assert.rejects(bundleOf({ ...firstApp, "public/.hidden": "" }), /contains no files to serve/);
});

Deno.test("DP6 damaged, truncated and inconsistent bundles are rejected", async (t) => {
  const whole = (await bundleOf(firstApp)).bytes;
  const manifest = manifestOf();
  const tar = (...entries: Entry[]) => packed(entries);
  const cases: Record<string, readonly [Promise<Uint8Array<ArrayBuffer>> | Uint8Array<ArrayBuffer>, RegExp]> =
    {
      "nothing": [new Uint8Array(), /damaged|empty/],
      "no archive": [new TextEncoder().encode("hello there, this is no archive"), /damaged/],
      "cut off": [whole.slice(0, whole.length - 30), /damaged|cut off/],
      "cut off early": [whole.slice(0, 100), /damaged|empty/],
      "a flipped byte": [whole.map((byte, at) => at === whole.length >> 1 ? byte ^ 1 : byte), /damaged|not/],
      "no manifest": [tar(codeEntry), /start with version\.json/],
      "a manifest that is not JSON": [tar({ name: "version.json", text: "{" }), /not JSON/],
      "a manifest of another shape": [tar(manifestEntry({ hash: "x" })), /is invalid/],
      "a wrong hash": [
        tar(manifestEntry({ ...manifest, hash: "0".repeat(32) }), codeEntry),
        /does not match its hash/,
      ],
      "a file missing": [tar(manifestEntry(manifest)), /truncated: "bundle\.js"/],
      "a file more": [
        tar(manifestEntry(manifest), codeEntry, { name: "code/functions/b.ts" }),
        /does not list/,
      ],
      "a file twice": [tar(manifestEntry(manifest), codeEntry, codeEntry), /does not list/],
      "a file elsewhere": [tar(manifestEntry(manifest), { name: "../a.ts", text }), /does not list/],
      "another content": [
        tar(manifestEntry(manifest), { ...codeEntry, text: "import {};\n" }),
        /does not match its manifest/,
      ],
      "a link as a file": [
        tar(manifestEntry(manifest), {
          name: codeEntry.name,
          type: "symlink",
          linkname: "/etc/passwd",
          size: 0,
        }),
        /does not list/,
      ],
      "a size far above its content": [
        tar(manifestEntry(manifestOf({ files: { "bundle.js": { ...file, bytes: 2 ** 30 } } }))),
        /the limit is/,
      ],
    };
  for (const [name, [bytes, expected]] of Object.entries(cases)) {
    await t.step(name, async () => assert.match(await refusal(await bytes), expected));
  }
});

Deno.test("[DP15] files with the same name on the server's disk are rejected with both names", () => {
  assert.equal(
    oneName(["functions/Notes.ts", "functions/notes.ts"]).message,
    '"functions/Notes.ts" and "functions/notes.ts" are the same name on the server\'s ' +
      "case-insensitive disk. Rename one",
  );
  // One letter, and a letter with a mark.
  assert.match(oneName(["a.ts", "\u00e9.ts", "e\u0301.ts"]).message, /"\u00e9\.ts" and "e\u0301\.ts"/);
});

Deno.test("[DP15] Windows paths are rejected", async () => {
  for (const path of ["functions\\a.ts", "C:\\functions\\a.ts"]) {
    const manifest = manifestOf({ files: { "bundle.js": file, [path]: file } });
    const bytes = await packed([{ name: "version.json", text: JSON.stringify(manifest) }]);
    assert.match(await refusal(bytes), /version\.json is invalid: files\..*: Invalid key/);
  }
});
