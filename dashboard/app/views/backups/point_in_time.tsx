/** Chooses a second of the past on a line of what can be restored, and has its state staged. */
import { useState } from "react";
import { adminSession } from "../../server/admin_session.ts";
import type { Range } from "../../server/stats.ts";
import { Button } from "../../ui/button.tsx";
import { useConfirm } from "../../ui/confirm.tsx";
import { duration, Time, utcText } from "../../ui/texts.tsx";
import { Card, Empty } from "../../ui/view.tsx";

export interface GenerationRange extends Range {
  readonly generation: string;
}

const SECOND_MS = 1_000;
/** Longer pasts are gone through by the minute. */
const DAY_MS = 86_400_000;

export function PointInTime({ ranges, onStaged }: {
  readonly ranges: readonly GenerationRange[];
  readonly onStaged: () => void;
}) {
  const { ask, dialog } = useConfirm();
  const from = Math.min(...ranges.map(({ fromTime }) => fromTime));
  const to = Math.max(...ranges.map(({ toTime }) => toTime));
  /** `null`: the newest state there is. */
  const [chosen, setChosen] = useState<number | null>(null);
  if (ranges.length === 0) {
    return (
      <Card title="Point in time">
        <Empty title="Nothing can be restored yet">
          <p>The first snapshot is on its way.</p>
        </Empty>
      </Card>
    );
  }
  const at = nearest(ranges, chosen ?? to);
  const range = ranges.find(({ fromTime, toTime }) => at >= fromTime && at <= toTime);
  const span = Math.max(1, to - from);
  const stepMs = span > DAY_MS ? 60 * SECOND_MS : SECOND_MS;
  const steps = Math.ceil(span / stepMs);
  const place = (time: number) => `${100 * (time - from) / span}%`;

  async function stage(): Promise<void> {
    await adminSession.fetch("/api/admin/restore/point-in-time", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        toTime: new Date(at).toISOString(),
        ...(range !== undefined && { generation: range.generation }),
      }),
    });
    onStaged();
  }

  return (
    <Card
      title="Point in time"
      actions={
        <Button
          tone="accent"
          onClick={() =>
            ask({
              title: `Restore the state of ${new Date(at).toLocaleString()}?`,
              text:
                "It is put together from the replica and checked now, and applied at the next start. Everything that came after it goes.",
              button: "Check and stage",
              done: "The restore is staged: it is applied at the next start.",
              run: stage,
            })}
        >
          Restore this state…
        </Button>
      }
    >
      <div className="stack">
        <div className="timeline">
          {ranges.map(({ generation, fromTime, toTime }) => (
            <span
              key={`${generation} ${fromTime}`}
              title={`${new Date(fromTime).toLocaleString()} – ${new Date(toTime).toLocaleString()}`}
              style={{ left: place(fromTime), width: place(from + toTime - fromTime) }}
            />
          ))}
          <input
            type="range"
            aria-label="Time to restore"
            aria-valuetext={new Date(at).toLocaleString()}
            min={0}
            max={steps}
            value={Math.ceil((at - from) / stepMs)}
            onChange={(event) => {
              const step = Number(event.target.value);
              setChosen(step === steps ? null : nearest(ranges, from + step * stepMs));
            }}
          />
        </div>
        <div className="row quiet small">
          <Time at={from} />
          <span className="grow" />
          <Time at={to} />
        </div>
        <div className="row">
          <label htmlFor="point-in-time">The state of</label>
          <input
            id="point-in-time"
            className="input fit"
            type="datetime-local"
            step="1"
            min={localText(from)}
            max={localText(to)}
            value={localText(at)}
            onChange={(event) => {
              const time = new Date(event.target.value).getTime();
              if (!Number.isNaN(time)) setChosen(nearest(ranges, time));
            }}
          />
          <span className="quiet" title={utcText(at)}>
            {at >= to ? "the newest there is" : `${duration(to - at)} before the newest`}
          </span>
          {chosen !== null && <Button tone="plain" onClick={() => setChosen(null)}>The newest</Button>}
        </div>
      </div>
      {dialog}
    </Card>
  );
}

/** A time that can be restored: this one, or the end of a range that is nearest to it. */
function nearest(ranges: readonly Range[], time: number): number {
  const ends = ranges.map(({ fromTime, toTime }) => Math.max(fromTime, Math.min(toTime, time)));
  return ends.reduce((best, end) => Math.abs(end - time) < Math.abs(best - time) ? end : best);
}

/** As an input of date and time takes it, in the reader's zone. */
function localText(time: number): string {
  const date = new Date(time - new Date(time).getTimezoneOffset() * 60_000);
  return date.toISOString().slice(0, 19);
}
