/** Uploads a file to an upload URL: a small one in one request, a large one in parts that can be resumed (tus). */

/** Files from this size on go in pieces, each of at most this size; in bytes. */
const PIECE_BYTES = 8 * 1024 * 1024;
/** Pauses before the line is tried again, in milliseconds; after the last one the upload has failed. */
const PAUSES_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000];

/**
 * Uploads; resolves to the id of the stored file. `onProgress` is called with the bytes sent. Aborting the signal ends
 * the upload and leaves nothing on the server.
 */
export async function uploadFile(client, { url, file, onProgress, signal }) {
  return file.size > PIECE_BYTES
    ? await uploadInPieces(url, file, { onProgress, signal })
    : await client.upload(url, file, { onProgress, signal });
}

async function uploadInPieces(url, file, { onProgress, signal }) {
  const upload = { place: null, offset: 0, storageId: null };
  signal.addEventListener("abort", () => {
    if (upload.place !== null) abandon(upload.place);
  });
  let failures = 0;
  while (upload.storageId === null) {
    const before = upload.offset;
    try {
      await resume(upload, { endpoint: url.replace("/upload?", "/resumable?"), file, onProgress, signal });
    } catch (error) {
      if (upload.offset > before) failures = 0;
      if (!error.mayPass || failures === PAUSES_MS.length) throw error;
      await pause(PAUSES_MS[failures++], signal);
    }
  }
  return upload.storageId;
}

/** Begins the upload, or asks how far it is, and sends what is missing. */
async function resume(upload, { endpoint, file, onProgress, signal }) {
  const record = (answer) => {
    upload.offset = Number(answer.getResponseHeader("Upload-Offset"));
    upload.storageId = answer.getResponseHeader("Syncline-Storage-Id");
  };
  if (upload.place === null) {
    const about = [["filename", file.name], ["filetype", file.type]].filter(([, text]) => text !== "");
    const answer = await send("POST", endpoint, {
      headers: {
        "Upload-Length": file.size,
        "Upload-Metadata": about.map(([key, text]) => `${key} ${base64(text)}`).join(","),
      },
      signal,
    });
    upload.place = new URL(answer.getResponseHeader("Location"), answer.responseURL).href;
    record(answer);
  } else {
    record(await send("HEAD", upload.place, { signal }));
  }
  while (upload.storageId === null) {
    const { offset } = upload;
    const answer = await send("PATCH", upload.place, {
      headers: { "Upload-Offset": offset, "Content-Type": "application/offset+octet-stream" },
      body: file.slice(offset, offset + PIECE_BYTES),
      onProgress: (sent) => onProgress(offset + sent),
      signal,
    });
    record(answer);
  }
}

/** Sends one request, by XMLHttpRequest because `fetch` reports no progress. Temporary errors have `mayPass`. */
function send(method, url, { headers = {}, body = null, onProgress, signal }) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    const fail = (message, mayPass) => {
      signal.removeEventListener("abort", abort);
      reject(Object.assign(new Error(message), { mayPass }));
    };
    if (signal.aborted) return fail("The upload was stopped", false);
    request.open(method, url);
    request.setRequestHeader("Tus-Resumable", "1.0.0");
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    if (onProgress !== undefined) request.upload.onprogress = ({ loaded }) => onProgress(loaded);
    request.onload = () => {
      if (request.status >= 400) {
        return fail(messageOf(request), [409, 429].includes(request.status) || request.status >= 500);
      }
      signal.removeEventListener("abort", abort);
      resolve(request);
    };
    request.onerror = () => fail("The line broke", true);
    request.onabort = () => fail("The upload was stopped", false);
    signal.addEventListener("abort", abort);
    request.send(body);
  });
}

/** The server's error message; responses to HEAD have none. */
function messageOf({ responseText, status }) {
  try {
    return JSON.parse(responseText).errorMessage;
  } catch {
    return `The server responded with status ${status}`;
  }
}

/** The server would remove it in a day anyway. */
function abandon(place) {
  fetch(place, { method: "DELETE", headers: { "Tus-Resumable": "1.0.0" }, keepalive: true }).catch(() => {});
}

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new Error("The upload was stopped"));
    });
  });
}

function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
