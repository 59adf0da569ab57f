/** What the functions behind `ctx.storage` have to know of the server they run for. */
import { z } from "zod";
import { UrlSigner } from "../url_signer.ts";

/** Handed to each isolate when it starts. */
export const storageSettings = z.strictObject({
  /** Key of URL signatures, base64url. */
  urlKey: z.string(),
  /** What URLs begin with, without a slash at its end; empty for URLs relative to the server. */
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

/** Throws in an isolate that was told of no server. */
export function storageUrls(): Urls {
  if (urls === null) throw new Error("This server stores no files");
  return urls;
}
