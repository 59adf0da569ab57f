/** Test images, created and measured by sharp in a process that may load it; tests may not. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

/** An image to make, or the bytes of one to measure, in base64. */
export type ImageRequest = {
  readonly width: number;
  readonly height: number;
  readonly format: "jpeg" | "png" | "webp" | "gif" | "avif" | "tiff";
  readonly alpha?: number;
  readonly opaqueChannel?: boolean;
  readonly orientation?: number;
  /** Random pixels, the same in every run. */
  readonly noise?: boolean;
  /** A single color, which needs few bytes at any size. */
  readonly flat?: boolean;
  /** JPEG only: several scans of increasing quality. */
  readonly progressive?: boolean;
} | { readonly measure: string };

export interface Measured {
  readonly format: string;
  readonly size: string;
  readonly hasAlpha: boolean;
  /** Whether it contains camera, location or colour profile metadata. */
  readonly metadata: boolean;
  readonly topLeft: number[];
  readonly bottomRight: number[];
}

async function ask(requests: readonly ImageRequest[]): Promise<unknown[]> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--quiet",
      "--no-prompt",
      "--allow-ffi",
      "--allow-read",
      "--allow-env",
      fileURLToPath(new URL("./image_tool.ts", import.meta.url)),
    ],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const input = child.stdin.getWriter();
  await input.write(new TextEncoder().encode(JSON.stringify(requests)));
  await input.close();
  const { success, stdout, stderr } = await child.output();
  assert.ok(success, new TextDecoder().decode(stderr));
  return JSON.parse(new TextDecoder().decode(stdout));
}

/** Left half red, right half blue, in each of the formats. */
export async function makeImages<Name extends string>(
  requests: Record<Name, Exclude<ImageRequest, { readonly measure: string }>>,
): Promise<Record<Name, Uint8Array<ArrayBuffer>>> {
  const made = await ask(Object.values(requests));
  return Object.fromEntries(
    Object.keys(requests).map((name, at) => [name, Uint8Array.fromBase64(String(made[at]))]),
  ) as Record<Name, Uint8Array<ArrayBuffer>>;
}

export async function measure(images: readonly Uint8Array[]): Promise<Measured[]> {
  return await ask(images.map((bytes) => ({ measure: bytes.toBase64() }))) as Measured[];
}
