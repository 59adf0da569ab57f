/** Stored files: a grid with previews, upload, details, and cleanup of orphans. */
import { type ChangeEvent, type DragEvent, useRef, useState } from "react";
import { useAction, useMutation, useQuery } from "syncline/react";
import { api } from "../../server/api.ts";
import { currentRoute, go, href, replace, useRoute } from "../../shell/route.ts";
import { Badge, Button, Icon, SearchBar } from "../../ui/controls.tsx";
import { useRefusal } from "../../ui/access.tsx";
import { Dialog, useConfirm } from "../../ui/dialog.tsx";
import { runPageTask, useIsBusy } from "../../ui/page_tasks.ts";
import { attempt, showToast } from "../../ui/toasts.tsx";
import { count, size, Time } from "../../ui/format.tsx";
import { ListEnd, useLiveList } from "../../ui/use_request.tsx";
import { useCallerNames } from "../../ui/caller_names.ts";
import { Card, Empty, Loading, View } from "../../ui/view.tsx";

const KINDS = [["", "All types"], ["image/", "Images"], ["video/", "Videos"], ["audio/", "Audio"], [
  "text/",
  "Text",
], [
  "application/pdf",
  "PDF",
]] as const;

const REMOVED_AT_ONCE = 100;
/** Lifetime of preview URLs. */
const PREVIEW_SECONDS = 3_600;
const PREVIEWED = /^image\/(png|jpeg|gif|webp)/;

export function Files() {
  const { path: [, fileId], search } = useRoute();
  const contentType = search.get("type") ?? "";
  const name = search.get("name") ?? "";
  const list = useLiveList(api.files.list, {
    ...(contentType !== "" && { contentType }),
    ...(name !== "" && { name }),
  });
  const orphans = useAction(api.files.orphans);
  const remove = useMutation(api.files.remove);
  const { ask, dialog } = useConfirm();
  const [looking, setLooking] = useState(false);
  const uploadUrl = useMutation(api.files.uploadUrl);
  const chooser = useRef<HTMLInputElement>(null);
  const sending = useIsBusy("files");
  const refusal = useRefusal("editor");
  const here = (changes: Record<string, string>) =>
    replace(["files"], { type: contentType, name, ...changes });

  async function upload(files: readonly File[]): Promise<void> {
    await runPageTask(
      { view: "files", text: "Uploading files…", cancelable: true },
      async ({ report, signal }) => {
        for (const [index, file] of files.entries()) {
          signal.throwIfAborted();
          report(`Uploading ${file.name}, ${index + 1} of ${files.length}…`);
          await send(await uploadUrl({}), { file, signal });
          showToast(`${file.name} uploaded.`);
        }
      },
    );
  }

  function choose({ target }: ChangeEvent<HTMLInputElement>): void {
    const files = [...target.files ?? []];
    target.value = "";
    void upload(files);
  }

  function drop(event: DragEvent): void {
    event.preventDefault();
    if (refusal !== undefined) showToast(`${refusal}.`, { tone: "bad" });
    else if (!sending) void upload([...event.dataTransfer.files]);
  }

  async function removeAll(fileIds: readonly string[]): Promise<void> {
    for (let at = 0; at < fileIds.length; at += REMOVED_AT_ONCE) {
      await remove({ fileIds: fileIds.slice(at, at + REMOVED_AT_ONCE) });
    }
  }

  async function findOrphans(): Promise<void> {
    setLooking(true);
    await attempt(async () => {
      const { fileIds, read } = await orphans({});
      if (fileIds.length === 0) return showToast(`No orphans found in ${count(read)} documents.`);
      ask({
        title: `${count(fileIds.length)} files are not referenced by any document`,
        text: "Files referenced only by code or other services are included.",
        button: "Delete files",
        needs: "editor",
        done: "Files deleted.",
        run: () => removeAll(fileIds),
      });
    });
    setLooking(false);
  }

  return (
    <View
      title="Files"
      text="Files stored by users and functions."
      actions={
        <>
          <input ref={chooser} type="file" aria-label="Files to upload" multiple hidden onChange={choose} />
          <Button disabled={looking} onClick={() => void findOrphans()}>Find orphans</Button>
          <Button
            tone="accent"
            needs="editor"
            disabled={sending}
            onClick={() => chooser.current?.click()}
          >
            <Icon name="plus" /> Upload…
          </Button>
        </>
      }
    >
      <SearchBar
        label="Search files"
        placeholder="File name"
        value={name}
        onChange={(name) => here({ name })}
        choices={[{ label: "Type", value: contentType, onChange: (type) => here({ type }), options: KINDS }]}
      />
      {list.results.length === 0 && list.status === "Exhausted" && <Empty title="No files" />}
      <ul className="tiles" onDragOver={(event) => event.preventDefault()} onDrop={drop}>
        {list.results.map((file) => (
          <li key={file._id}>
            <a className="tile" href={href(["files", file._id], { type: contentType, name })}>
              <Preview fileId={file._id} contentType={file.contentType} edge={160} />
              <span className="tile-name">{file.name ?? file._id}</span>
              <span className="quiet">{size(file.size)}</span>
            </a>
          </li>
        ))}
      </ul>
      <ListEnd list={list} />
      {fileId !== undefined && (
        <FileSheet
          fileId={fileId}
          // Filters may have changed while a deletion was awaited.
          onClose={() => go(["files"], Object.fromEntries(currentRoute().search))}
        />
      )}
      {dialog}
    </View>
  );
}

/** Uploads a file. Throws the server's error message on failure. */
async function send(
  url: string,
  { file, signal }: { readonly file: File; readonly signal: AbortSignal },
): Promise<void> {
  const search = url.slice(url.indexOf("?"));
  // Use this page's origin, since the URL may contain a public host name.
  const answer = await fetch(`/api/storage/upload${search}&filename=${encodeURIComponent(file.name)}`, {
    method: "POST",
    body: file,
    signal,
  });
  if (answer.ok) return;
  const { errorMessage } = await answer.json().catch(() => ({})) as { errorMessage?: string };
  throw new Error(errorMessage ?? `${file.name} was rejected with status ${answer.status}`);
}

function Preview(
  { fileId, contentType, edge }: {
    readonly fileId: string;
    readonly contentType: string | null;
    readonly edge: number;
  },
) {
  const previewed = PREVIEWED.test(contentType ?? "");
  // URL that could not be shown: for example, --thumb-sizes may not allow this size.
  const [failed, setFailed] = useState<string | null>(null);
  const url = useQuery(api.files.url, previewed ? { fileId, ttlSeconds: PREVIEW_SECONDS } : "skip");
  return (
    <span className="preview">
      {url && url !== failed
        ? <img src={`${url}&thumb=${edge}`} alt="" loading="lazy" onError={() => setFailed(url)} />
        : <Icon name="files" />}
    </span>
  );
}

function FileSheet({ fileId, onClose }: { readonly fileId: string; readonly onClose: () => void }) {
  const file = useQuery(api.files.get, { fileId });
  const url = useQuery(api.files.url, { fileId, ttlSeconds: PREVIEW_SECONDS });
  const findReferences = useAction(api.files.references);
  const remove = useMutation(api.files.remove);
  const { ask, dialog } = useConfirm();
  const caller = file?.createdBy ? `user:${file.createdBy}` : null;
  const uploader = useCallerNames([caller])(caller).replace(/^user:/, "");
  const [references, setReferences] = useState<readonly { table: string; id: string }[] | null>(null);
  return (
    <Dialog
      open
      form="side"
      title={file?.name ?? "File"}
      onClose={onClose}
      footer={file && (
        <>
          <Button
            tone="bad"
            needs="editor"
            onClick={() =>
              ask({
                title: "Delete this file?",
                text: "Documents keep the ID of the deleted file.",
                button: "Delete file",
                done: "File deleted.",
                run: async () => {
                  await remove({ fileIds: [fileId] });
                  onClose();
                },
              })}
          >
            Delete
          </Button>
          <span className="grow" />
          {url && <a className="button" href={`${url}&download=1`}>Download</a>}
        </>
      )}
    >
      {file === undefined && <Loading />}
      {file === null && <Empty title="File not found" />}
      {file && (
        <>
          <Preview fileId={fileId} contentType={file.contentType} edge={512} />
          <dl className="facts">
            <dt>ID</dt>
            <dd className="mono">{file._id}</dd>
            <dt>Type</dt>
            <dd>{file.contentType ?? "unknown"}</dd>
            <dt>Size</dt>
            <dd>{size(file.size)}</dd>
            <dt>Stored</dt>
            <dd>
              <Time at={file._creationTime} />
            </dd>
            <dt>Uploaded by</dt>
            <dd>
              {file.createdBy === null
                ? "anonymous"
                : <a href={href(["users", file.createdBy])}>{uploader}</a>}
            </dd>
            <dt>SHA-256</dt>
            <dd className="mono">{file.sha256}</dd>
          </dl>
          <Card
            title="References"
            actions={
              <Button
                onClick={() =>
                  void attempt(async () => setReferences((await findReferences({ fileId })).references))}
              >
                Find
              </Button>
            }
          >
            {references === null ? <p className="quiet">Scans every document.</p> : references.length === 0
              ? (
                <p>
                  None <Badge tone="warn">orphan</Badge>
                </p>
              )
              : (
                <ul>
                  {references.map(({ table, id }) => (
                    <li key={id}>
                      <a href={href(["data", table, id])}>{table}: {id}</a>
                    </li>
                  ))}
                </ul>
              )}
          </Card>
        </>
      )}
      {dialog}
    </Dialog>
  );
}
