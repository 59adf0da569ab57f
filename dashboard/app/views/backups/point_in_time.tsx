/** Point-in-time restore: a timeline of restorable states from which one second is chosen. */
import { useState } from "react";
import { adminSession } from "../../server/admin_session.ts";
import { Button } from "../../ui/controls.tsx";
import { useConfirm } from "../../ui/dialog.tsx";
import { duration, pickerText, Time, timeText, utcText } from "../../ui/format.tsx";
import { useIsBusy } from "../../ui/page_tasks.ts";
import { Card, Empty } from "../../ui/view.tsx";
import { CopyTable } from "./copy_table.tsx";
import { type GenerationRange, nearest, pointAt, spanOf } from "./restorable.ts";
import { RESTORE_QUESTION } from "./scheduled.tsx";

const SECOND_MS = 1_000;
/** Longer timelines step by the minute. */
const DAY_MS = 86_400_000;

export function PointInTime({ ranges, onStaged }: {
  readonly ranges: readonly GenerationRange[];
  readonly onStaged: () => void;
}) {
  const { ask, dialog } = useConfirm();
  const [copying, setCopying] = useState(false);
  const busy = useIsBusy("backups");
  const { from, to } = spanOf(ranges);
  /** `null` selects the newest state. */
  const [chosen, setChosen] = useState<number | null>(null);
  if (ranges.length === 0) {
    return (
      <Card title="Point in time">
        <Empty title="Nothing can be restored yet">
          <p>The first snapshot has not been uploaded yet.</p>
        </Empty>
      </Card>
    );
  }
  const at = nearest(ranges, chosen ?? to);
  const span = Math.max(1, to - from);
  const stepMs = span > DAY_MS ? 60 * SECOND_MS : SECOND_MS;
  const steps = Math.ceil(span / stepMs);
  const place = (time: number) => `${100 * (time - from) / span}%`;

  const point = pointAt(ranges, at);
  async function stage(): Promise<void> {
    await adminSession.fetch("/api/admin/restore/point-in-time", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(point),
    });
    onStaged();
  }

  return (
    <Card
      title="Point in time"
      actions={
        <>
          <Button needs="owner" disabled={busy} onClick={() => setCopying(true)}>Copy one table…</Button>
          <Button
            needs="owner"
            disabled={busy}
            onClick={() =>
              ask({
                title: `Restore everything to ${timeText(at)}?`,
                text:
                  "The state is rebuilt from the replica and verified now, and applied at the next start. Everything written since then will be lost. To restore one table only, copy it instead.",
                button: RESTORE_QUESTION.button,
                done: RESTORE_QUESTION.done,
                run: stage,
              })}
          >
            Restore everything…
          </Button>
        </>
      }
    >
      <div className="stack">
        <div className="timeline">
          {ranges.map(({ generation, fromTime, toTime }) => (
            <span
              key={`${generation} ${fromTime}`}
              title={`${timeText(fromTime)} – ${timeText(toTime)}`}
              style={{ left: place(fromTime), width: place(from + toTime - fromTime) }}
            />
          ))}
          <input
            type="range"
            aria-label="Time to restore"
            aria-valuetext={timeText(at)}
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
          <label htmlFor="point-in-time">Restore to</label>
          <input
            id="point-in-time"
            className="input fit"
            type="datetime-local"
            step="1"
            min={pickerText(from)}
            max={pickerText(to)}
            value={pickerText(at)}
            onChange={(event) => {
              const time = new Date(event.target.value).getTime();
              if (!Number.isNaN(time)) setChosen(nearest(ranges, time));
            }}
          />
          <span className="quiet" title={utcText(at)}>
            {at >= to ? "latest" : `${duration(to - at)} before latest`}
          </span>
          {chosen !== null && <Button tone="plain" onClick={() => setChosen(null)}>Latest</Button>}
        </div>
      </div>
      {dialog}
      {copying && (
        <CopyTable
          title={`Copy one table as of ${timeText(at)}`}
          sourceOf={() => point}
          onClose={() => setCopying(false)}
        />
      )}
    </Card>
  );
}
