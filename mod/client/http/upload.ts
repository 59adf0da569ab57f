/** Uploads of files in one request, with progress where the platform reports it. */

/** The id of a stored file: `Id<"_storage">`. */
export type StorageId = string & { readonly "~table": "_storage" };

export interface UploadOptions {
  /** Called with the number of bytes sent so far; only once, at the end, outside of browsers. */
  readonly onProgress?: (sent: number) => void;
  /** Aborts the upload. */
  readonly signal?: AbortSignal;
}

export type Upload = (url: string, file: Blob, options: UploadOptions) => Promise<StorageId>;

/** Returns an upload function that uses this `fetch`, or else the platform: `fetch` reports no progress, XMLHttpRequest does. */
export function uploadWith(fetch?: typeof globalThis.fetch): Upload {
  const send = fetch === undefined && "XMLHttpRequest" in globalThis ? sendWithProgress : sendWithFetch;
  return async (url, file, options) => {
    const { name } = file as { name?: string };
    const target = name === undefined ? url : `${url}&filename=${encodeURIComponent(name)}`;
    const { status, text } = await send(target, file, { fetch, ...options });
    const answer = parse(text);
    if (status < 400 && answer.storageId !== undefined) return answer.storageId as StorageId;
    throw new Error(answer.errorMessage ?? `The server responded with status ${status}`);
  };
}

interface Send extends UploadOptions {
  readonly fetch: typeof globalThis.fetch | undefined;
}

async function sendWithFetch(url: string, file: Blob, { fetch, onProgress, signal }: Send) {
  const response = await (fetch ?? globalThis.fetch)(url, {
    method: "POST",
    body: file,
    ...signal && { signal },
  });
  const text = await response.text();
  onProgress?.(file.size);
  return { status: response.status, text };
}

function sendWithProgress(url: string, file: Blob, { onProgress, signal }: Send) {
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    signal?.throwIfAborted();
    const request = new XMLHttpRequest();
    request.open("POST", url);
    request.upload.onprogress = ({ loaded }) => onProgress?.(loaded);
    request.onload = () => resolve({ status: request.status, text: request.responseText });
    request.onerror = () => reject(new TypeError("Cannot reach the server to upload the file"));
    request.onabort = () => reject(signal?.reason);
    const abort = () => request.abort();
    signal?.addEventListener("abort", abort);
    request.onloadend = () => signal?.removeEventListener("abort", abort);
    request.send(file);
  });
}

function parse(text: string): { readonly storageId?: string; readonly errorMessage?: string } {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
