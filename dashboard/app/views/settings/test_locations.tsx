/** Tests storage locations step by step: list, write, read, remove. */
import { useEffect, useId, useState } from "react";
import { useAction, useQuery } from "syncline/react";
import type { ProbeReport, ProbeStep } from "../../../../mod/kit/locations/location_probe.ts";
import { adminSession, RequestError } from "../../server/admin_session.ts";
import { api } from "../../server/api.ts";
import { Button, TextField } from "../../ui/controls.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { type TestLine, TestSteps } from "./test_steps.tsx";

const LOCATIONS = [
  { title: "Files", path: "/api/admin/places/files/check", none: "Files are stored by another server." },
  { title: "Replica", path: "/api/admin/places/replica/check", none: "Replication is off." },
  {
    title: "Scheduled backups",
    path: "/api/admin/scheduled-backups/check",
    none: "Scheduled backups are off.",
  },
] as const;

type Location = (typeof LOCATIONS)[number];

/** Result of the backup target's test, which has no steps. */
interface BackupTargetReport {
  readonly place: string;
  readonly error: string | null;
}

type Outcome = { readonly none: true } | { readonly failed: string } | ProbeReport | BackupTargetReport;

const DONE: Readonly<Record<ProbeStep, string>> = {
  list: "List",
  write: "Write",
  read: "Read",
  remove: "Remove",
};
const NOT_DONE: Readonly<Record<ProbeStep, string>> = {
  list: "Cannot list",
  write: "Cannot write",
  read: "Cannot read",
  remove: "Cannot remove",
};

export function TestLocations({ onClose }: { readonly onClose: () => void }) {
  const [round, setRound] = useState(0);
  return (
    <Dialog
      open
      title="Test all locations"
      text="Writes, reads and removes a small test file."
      onClose={onClose}
      footer={<Button onClick={() => setRound(round + 1)}>Test again</Button>}
    >
      <div className="stack">
        {LOCATIONS.map((location) => <LocationTest key={`${location.path} ${round}`} location={location} />)}
      </div>
    </Dialog>
  );
}

function LocationTest({ location: { title, path, none } }: { readonly location: Location }) {
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  useEffect(() => {
    const leaving = new AbortController();
    outcomeOf(path, leaving.signal).then((now) => leaving.signal.aborted || setOutcome(now));
    return () => leaving.abort();
  }, [path]);
  return (
    <section className="location-test" aria-label={title} aria-busy={outcome === null}>
      <h2>
        {title}{" "}
        {outcome !== null && "place" in outcome && <span className="quiet mono">{outcome.place}</span>}
      </h2>
      {outcome !== null && "none" in outcome && <p className="quiet">{none}</p>}
      <TestSteps lines={outcome === null ? null : linesOf(outcome)} />
    </section>
  );
}

function linesOf(outcome: Outcome): TestLine[] {
  if ("none" in outcome) return [];
  if ("failed" in outcome) return [{ text: outcome.failed, error: true }];
  if ("steps" in outcome) {
    return outcome.steps.map(({ step, error }) =>
      error === null
        ? { text: DONE[step], error: false }
        : { text: `${NOT_DONE[step]}: ${error}`, error: true }
    );
  }
  return [{ text: outcome.error ?? "Reachable and writable", error: outcome.error !== null }];
}

async function outcomeOf(path: string, signal: AbortSignal): Promise<Outcome> {
  try {
    const response = await adminSession.fetch(path, { method: "POST", signal });
    return await response.json() as ProbeReport | BackupTargetReport;
  } catch (error) {
    if (error instanceof RequestError && error.status === 404) return { none: true };
    return { failed: error instanceof Error ? error.message : String(error) };
  }
}

/** Tests any bucket with the saved access to the service. */
export function TestBucket({ onClose }: { readonly onClose: () => void }) {
  const test = useAction(api.settings.testBucket);
  const target = useQuery(api.settings.list)?.find(({ name }) => name === "backupTo");
  const stored = target?.given?.text ?? target?.text ?? "";
  /** Not an unsaved edit. */
  const [tested, setTested] = useState<string | null>(null);
  const [report, setReport] = useState<ProbeReport | { readonly failed: string } | null>(null);
  const [busy, setBusy] = useState(false);
  const id = useId();
  async function submit(location: string): Promise<void> {
    setBusy(true);
    setTested(location);
    setReport(null);
    setReport(
      await test({ location }).catch((error) => ({
        failed: error instanceof Error ? error.message : String(error),
      })),
    );
    setBusy(false);
  }
  return (
    <Dialog
      open
      title="Test a bucket"
      text="Lists it, then writes, reads and removes a small object, with the saved access keys."
      onClose={onClose}
      footer={<Button type="submit" form={id} tone="accent" busy={busy}>Test</Button>}
    >
      <form
        id={id}
        onSubmit={(event) => {
          event.preventDefault();
          void submit(String(new FormData(event.currentTarget).get("location")));
        }}
      >
        <TextField
          label="Bucket"
          name="location"
          required
          autoFocus
          placeholder="s3://bucket/prefix"
          defaultValue={tested ?? (stored.startsWith("s3:") ? stored : "")}
        />
      </form>
      {(busy || report !== null) && <TestSteps lines={report === null ? null : linesOf(report)} />}
    </Dialog>
  );
}
