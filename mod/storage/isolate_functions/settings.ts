/** Server settings required by the functions behind `ctx.storage`. */
import { z } from "zod";
import { UrlSigner } from "../url_signer.ts";

/** Passed to each isolate when it starts. */
export const storageSettings = z.strictObject({
  /** Key of URL signatures, base64url. */
  urlKey: z.string(),
  /** Prefix of URLs without a trailing slash; empty for URLs relative to the server. */
  baseUrl: z.string(),
});

export type StorageSettings = z.infer<typeof storageSettings>;

interface Urls {
  readonly signer: UrlSigner;
  readonly baseUrl: string;
}

let urls: Urls | null = null;

/** Called once in each isolate, before any function runs. */
export function configureStorage(settings: unknown): void {
  const { urlKey, baseUrl } = storageSettings.parse(settings);
  urls = { signer: new UrlSigner(Uint8Array.fromBase64(urlKey, { alphabet: "base64url" })), baseUrl };
}

/** Throws if the isolate has no storage settings. */
export function storageUrls(): Urls {
  if (urls === null) throw new Error("File storage is not available on this server");
  return urls;
}
