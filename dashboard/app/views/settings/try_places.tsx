/** Tries out every place the server keeps something in, and says of each step whether it can be done. */
import { useEffect, useState } from "react";
import type { ProbeReport, ProbeStep } from "../../../../mod/kit/locations/location_probe.ts";
import { adminSession, RequestError } from "../../server/admin_session.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Icon } from "../../ui/icon.tsx";

const PLACES = [
  { title: "Files", path: "/api/admin/places/files/check", none: "Files are another server's." },
  { title: "Replica", path: "/api/admin/places/replica/check", none: "This server does not replicate." },
  {
    title: "Scheduled backups",
    path: "/api/admin/scheduled-backups/check",
    none: "There are no scheduled backups.",
  },
] as const;

type Place = (typeof PLACES)[number];

/** What the place of backups answers: it is tried as a whole. */
interface Whole {
  readonly place: string;
  readonly error: string | null;
}

type Outcome = { readonly none: true } | { readonly failed: string } | ProbeReport | Whole;

const DONE: Readonly<Record<ProbeStep, string>> = {
  list: "What is there can be listed",
  write: "It can be written to",
  read: "What was written is read back",
  remove: "It can be removed again",
};
const NOT_DONE: Readonly<Record<ProbeStep, string>> = {
  list: "What is there cannot be listed",
  write: "It cannot be written to",
  read: "What was written cannot be read back",
  remove: "What was written cannot be removed",
};

export function TryPlaces({ onClose }: { readonly onClose: () => void }) {
  const [round, setRound] = useState(0);
  return (
    <Dialog
      open
      title="Try all places"
      text="A few bytes are written, read back and removed, as the server does it."
      onClose={onClose}
      foot={<Button onClick={() => setRound(round + 1)}>Try again</Button>}
    >
      <div className="stack">
        {PLACES.map((place) => <Tried key={`${place.path} ${round}`} place={place} />)}
      </div>
    </Dialog>
  );
}

function Tried({ place: { title, path, none } }: { readonly place: Place }) {
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  useEffect(() => {
    const leaving = new AbortController();
    outcomeOf(path, leaving.signal).then((now) => leaving.signal.aborted || setOutcome(now));
    return () => leaving.abort();
  }, [path]);
  return (
    <section className="tried" aria-label={title} aria-busy={outcome === null}>
      <h2>
        {title}{" "}
        {outcome !== null && "place" in outcome && <span className="quiet mono">{outcome.place}</span>}
      </h2>
      {outcome === null && <p className="quiet" role="status">It is tried…</p>}
      {outcome !== null && "none" in outcome && <p className="quiet">{none}</p>}
      {outcome !== null &&
        linesOf(outcome).map(({ text, error }) => (
          <p key={text} className={error ? "field-error" : undefined} role={error ? "alert" : undefined}>
            <span data-tone={error ? "bad" : "good"}>
              <Icon name={error ? "warn" : "check"} />
            </span>{" "}
            {text}
          </p>
        ))}
    </section>
  );
}

function linesOf(outcome: Outcome): { readonly text: string; readonly error: boolean }[] {
  if ("none" in outcome) return [];
  if ("failed" in outcome) return [{ text: outcome.failed, error: true }];
  if ("steps" in outcome) {
    return outcome.steps.map(({ step, error }) =>
      error === null
        ? { text: DONE[step], error: false }
        : { text: `${NOT_DONE[step]}: ${error}`, error: true }
    );
  }
  return [{ text: outcome.error ?? "It can be used", error: outcome.error !== null }];
}

async function outcomeOf(path: string, signal: AbortSignal): Promise<Outcome> {
  try {
    const response = await adminSession.fetch(path, { method: "POST", signal });
    return await response.json() as ProbeReport | Whole;
  } catch (error) {
    if (error instanceof RequestError && error.status === 404) return { none: true };
    return { failed: error instanceof Error ? error.message : String(error) };
  }
}
