/** Deployed versions with their history, and rollback to an earlier one. */
import { lazy, Suspense, useState } from "react";
import { useQuery } from "syncline/react";
import type { DeployChanges, Difference } from "../../../../mod/ops/deploy/changes.ts";
import type { DeployedVersion, DeployedVersions } from "../../../../mod/ops/deploy/deployments.ts";
import { adminSession } from "../../server/admin_session.ts";
import { api } from "../../server/api.ts";
import { ERRORS } from "../../server/outcomes.ts";
import { href, useRoute } from "../../shell/route.ts";
import { Badge, Button, TextField } from "../../ui/controls.tsx";
import { copyText } from "../../ui/copy_text.ts";
import { CancelButton, Dialog } from "../../ui/dialog.tsx";
import { attempt, showToast } from "../../ui/toasts.tsx";
import { Card, Empty, Loading, Table, View } from "../../ui/view.tsx";
import { BreakableName, count, countOf, size, Time } from "../../ui/format.tsx";
import { useRequest } from "../../ui/use_request.tsx";

/** Loads the library that compares texts. */
const VersionPage = lazy(async () => ({ default: (await import("./version_page.tsx")).VersionPage }));

const ASKED_EVERY_MS = 15_000;
const HASH_CHARS = 12;

export function Versions() {
  const { path: [, named] } = useRoute();
  const { value, error, refetch } = useRequest<DeployedVersions>(
    "/api/admin/functions/versions",
    ASKED_EVERY_MS,
  );
  // Removed administrators are shown by ID.
  const administrators = useQuery(api.administrators.list) ?? [];
  const emails = new Map<string, string>(administrators.map(({ adminId, email }) => [adminId, email]));
  /** The rollback to confirm, with its changes. */
  const [asked, setAsked] = useState<
    { readonly version: DeployedVersion; readonly changes: DeployChanges } | null
  >(
    null,
  );
  const [message, setMessage] = useState("");
  const [busy, setBusy] = useState(false);

  function close(): void {
    setAsked(null);
    setMessage("");
  }

  async function ask(version: DeployedVersion): Promise<void> {
    setBusy(true);
    await attempt(async () => setAsked({ version, changes: await rollBack(version.hash, { dryRun: true }) }));
    setBusy(false);
  }

  async function goBack({ hash }: DeployedVersion): Promise<void> {
    setBusy(true);
    const done = await attempt(() => rollBack(hash, { dryRun: false, message }));
    setBusy(false);
    if (!done) return;
    close();
    showToast(`Version ${hash.slice(0, HASH_CHARS)} is now live.`);
    refetch();
  }

  if (named !== undefined) {
    return (
      <Suspense
        fallback={
          <View title="Versions">
            <Loading />
          </View>
        }
      >
        <VersionPage hash={named} versions={value?.versions ?? []} />
      </Suspense>
    );
  }
  const nameOf = (by: string) => emails.get(by) ?? by;
  return (
    <View
      title="Versions"
      text="Deployed versions of the code. A rollback changes code and indexes, never documents."
    >
      {error !== null && <p className="field-error" role="alert">{error}</p>}
      <Card flush>
        {value === undefined && error === null && <Loading />}
        {value?.pinned && (
          <Empty title="This server runs the functions folder it was started with">
            <p>
              To deploy to it, restart it without <code>--functions</code> and{" "}
              <code>--dev</code>, in a folder without a <code>functions</code>{" "}
              folder. It continues with the version that it served last; a server of a cluster serves no
              functions until the first deploy. Then deploy the same code first, so that it appears here.
            </p>
            <FirstDeploy />
          </Empty>
        )}
        {value !== undefined && !value.pinned && value.versions.length === 0 && (
          <Empty title="No deploys yet">
            <FirstDeploy />
          </Empty>
        )}
        {value !== undefined && value.versions.length > 0 && (
          <Table head={["Version", "Deployed", { number: "Functions" }, { number: "Size" }]} actions>
            {value.versions.map((version) => (
              <tr key={version.hash}>
                <td className="wrap" title={version.hash}>
                  <a className="mono" href={href(["versions", version.hash])}>
                    {version.hash.slice(0, HASH_CHARS)}
                  </a>{" "}
                  {version.current && <Badge tone="good">live</Badge>} {version.message}
                </td>
                <td>
                  <Time at={version.deployedAt} />
                  <div className="quiet small">by {nameOf(version.by)}</div>
                </td>
                <td className="number">{count(version.functions)}</td>
                <td className="number">{size(version.bytes)}</td>
                <td className="number">
                  <span className="row end">
                    {!version.current && (
                      <Button
                        needs="editor"
                        disabled={busy || value.pinned}
                        onClick={() => void ask(version)}
                      >
                        Roll back…
                      </Button>
                    )}
                    <a
                      className="button"
                      title="Errors of the runs that this version served"
                      href={href(["logs"], { version: version.hash, outcome: ERRORS })}
                    >
                      Errors
                    </a>
                    <a
                      className="button"
                      href={href(["versions", version.hash], {
                        compare: comparedWith(version, value.versions),
                      })}
                    >
                      Compare
                    </a>
                  </span>
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Card>
      {value !== undefined && value.history.length > 0 && (
        <History history={value.history} kept={value.versions} nameOf={nameOf} />
      )}
      {asked !== null && (
        <Dialog
          open
          title={`Roll back to ${asked.version.hash.slice(0, HASH_CHARS)}?`}
          text="Clients stay connected. Queries run again with the other version."
          unsaved={message !== ""}
          onClose={close}
          footer={
            <>
              <CancelButton />
              <Button
                tone="bad"
                disabled={busy || !asked.changes.fits}
                onClick={() => void goBack(asked.version)}
              >
                Roll back
              </Button>
            </>
          }
        >
          <Changes changes={asked.changes} />
          <TextField
            label="Message"
            hint="Why you roll back, for the history. Optional."
            maxLength={500}
            value={message}
            onChange={(event) => setMessage(event.target.value)}
          />
        </Dialog>
      )}
    </View>
  );
}

/** Commands of the first deploy. */
function FirstDeploy() {
  const commands = `export SYNCLINE_URL=${location.origin} SYNCLINE_DEPLOY_KEY=syncline_deploy_...
npx syncline deploy --dry-run
npx syncline deploy`;
  return (
    <>
      <p>
        Create a <a href={href(["deploying"], { make: "deploy" })}>deploy key</a>{" "}
        and run these commands in the folder of the app:
      </p>
      <pre className="result" aria-label="Commands of the first deploy" tabIndex={0}>{commands}</pre>
      <Button onClick={() => void copyText(commands, "Commands copied.")}>Copy</Button>
    </>
  );
}

/** The version that a comparison begins with: the live one, or for that one the version before. */
function comparedWith(
  { hash, current }: DeployedVersion,
  versions: readonly DeployedVersion[],
): string | undefined {
  return versions.find((other) => other.hash !== hash && (current || other.current))?.hash;
}

function History({ history, kept, nameOf }: {
  readonly history: DeployedVersions["history"];
  /** Versions that are still available. */
  readonly kept: readonly DeployedVersion[];
  readonly nameOf: (by: string) => string;
}) {
  return (
    <Card flush title="History">
      <Table head={["Served from", "Until", "Version", "By", "Message"]} actions>
        {history.map(({ hash, from, to, by, message }) => {
          const span = { from: String(from), ...to !== null && { to: String(to) } };
          const name = hash.slice(0, HASH_CHARS);
          return (
            <tr key={from}>
              <td>
                <Time at={from} />
              </td>
              <td>{to === null ? "now" : <Time at={to} />}</td>
              <td className="mono" title={hash}>
                {kept.some((version) => version.hash === hash)
                  ? <a href={href(["versions", hash])}>{name}</a>
                  : name}
              </td>
              <td className="args">
                <BreakableName text={nameOf(by)} />
              </td>
              <td className="wrap">{message ?? "–"}</td>
              <td className="number">
                <span className="row end">
                  <a href={href(["logs"], span)}>Logs</a>
                  <a href={href(["logs"], { ...span, outcome: ERRORS })}>Errors</a>
                </span>
              </td>
            </tr>
          );
        })}
      </Table>
    </Card>
  );
}

/** @param dryRun Returns the changes without applying them. */
async function rollBack(
  hash: string,
  { dryRun, message = "" }: { readonly dryRun: boolean; readonly message?: string },
): Promise<DeployChanges> {
  const response = await adminSession.fetch("/api/admin/functions/rollback", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ hash, dryRun, message }),
  });
  return (await response.json() as { readonly changes: DeployChanges }).changes;
}

function Changes({ changes }: { readonly changes: DeployChanges }) {
  const { functions, crons, jobs, frontendGoes, schema, fits } = changes;
  const lost = schema.unreachable.length + jobs.lost.length > 0;
  return (
    <>
      {!fits && (
        <p className="field-error" role="alert">Stored documents do not match the schema of that version.</p>
      )}
      {lost && (
        <Card title="Not available in that version">
          <ul className="errors">
            {schema.unreachable.map(({ table, documents }) => (
              <li key={table}>
                Table <span className="mono">{table}</span>: {countOf(documents, "document")}{" "}
                will be out of reach of functions
              </li>
            ))}
            {jobs.lost.map(({ function: path, jobs: pending }) => (
              <li key={path}>
                <span className="mono">{path}</span>: {countOf(pending, "pending job")} will fail when due
              </li>
            ))}
          </ul>
          <p className="quiet">
            {!jobs.complete && "There are more jobs than were counted. "}
            The documents are kept and stay visible in the data view. Jobs can be retried or canceled in the
            schedule.
          </p>
        </Card>
      )}
      <Differences title="Functions" difference={functions} />
      <Differences title="Cron jobs" difference={crons} />
      <Differences title="Tables" difference={{ added: schema.createdTables, removed: [], changed: [] }} />
      <Differences
        title="Indexes"
        difference={{ added: schema.createdIndexes, removed: schema.droppedIndexes, changed: [] }}
      />
      {frontendGoes && <p>That version has no frontend. The current one will be removed.</p>}
      {!lost && !frontendGoes && isEmpty(functions) && isEmpty(crons) && <p>No functions changed.</p>}
    </>
  );
}

function isEmpty({ added, removed, changed }: Difference): boolean {
  return added.length + removed.length + changed.length === 0;
}

function Differences({ title, difference }: { readonly title: string; readonly difference: Difference }) {
  const { added, removed, changed } = difference;
  const lines = [
    ...added.map((name) => ({ name, tone: "good" as const, text: "added" })),
    ...removed.map((name) => ({ name, tone: "bad" as const, text: "removed" })),
    ...changed.map((name) => ({ name, tone: "warn" as const, text: "changed" })),
  ];
  if (lines.length === 0) return null;
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <ul className="errors">
        {lines.map(({ name, tone, text }) => (
          <li key={name}>
            <span className="mono">{name}</span> <Badge tone={tone}>{text}</Badge>
          </li>
        ))}
      </ul>
    </section>
  );
}
