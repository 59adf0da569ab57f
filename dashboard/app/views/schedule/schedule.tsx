/** Scheduled functions and cron jobs. */
import { useMutation, useQuery } from "syncline/react";
import { api } from "../../server/api.ts";
import type { WaitingJobs } from "../../../../mod/scheduler/isolate_functions/jobs.ts";
import { FAILURES } from "../../server/outcomes.ts";
import { href, replace, useRoute } from "../../shell/route.ts";
import { Badge, Button } from "../../ui/controls.tsx";
import { attempt } from "../../ui/toasts.tsx";
import { Card, Empty, Table, TableCard, View } from "../../ui/view.tsx";
import { countOf, tenths, Time } from "../../ui/format.tsx";
import { ListEnd, useLiveList, useRequest } from "../../ui/use_request.tsx";

type StateKind = "pending" | "inProgress" | "success" | "failed" | "canceled";

const STATES: Readonly<
  Record<StateKind, { readonly text: string; readonly tone?: "good" | "bad" | "accent" }>
> = {
  pending: { text: "pending" },
  inProgress: { text: "running", tone: "accent" },
  success: { text: "done", tone: "good" },
  failed: { text: "failed", tone: "bad" },
  canceled: { text: "canceled" },
};

export function Schedule() {
  return (
    <View title="Schedule" text="Scheduled functions and cron jobs.">
      <OrphanedJobs />
      <Crons />
      <Jobs />
    </View>
  );
}

/** The count reads all pending jobs. */
const COUNTED_EVERY_MS = 30_000;

/** Warns about pending jobs whose functions the live version lacks, such as after a rollback. */
function OrphanedJobs() {
  const { value } = useRequest<WaitingJobs>("_admin/schedule:orphanedJobs", COUNTED_EVERY_MS, "query");
  if (value === undefined || value.functions.length === 0) return null;
  const jobs = value.functions.reduce((sum, { jobs }) => sum + jobs, 0);
  return (
    <p className="banner row" role="status">
      <span className="grow">
        {!value.complete && "At least "}
        {countOf(jobs, "pending job")} {jobs === 1 ? "calls a function" : "call functions"}{" "}
        that the live version lacks: {value.functions.map(({ function: path }) => path).join(", ")}.{" "}
        {jobs === 1 ? "It fails when it is due" : "They fail when they are due"}.
      </span>
      <a className="button" href={href(["schedule"], { orphaned: "true" })}>Show</a>
    </p>
  );
}

function Crons() {
  const crons = useQuery(api.schedule.crons);
  const runNow = useMutation(api.schedule.runCronNow);
  return (
    <TableCard
      title="Cron jobs"
      empty={{
        title: "No cron jobs",
        text: (
          <>
            Define them in <code>crons.ts</code> in the functions folder.
          </>
        ),
      }}
      head={["Name", "Schedule", "Function", "Last run", "Next run"]}
      actions
      rows={crons}
      row={(cron) => (
        <tr key={cron.name}>
          <td>
            {cron.name} {cron.ofService && <Badge>service</Badge>}
          </td>
          <td>{scheduleText(cron.schedule)}</td>
          <td className="mono">
            {cron.ofService
              ? cron.function
              : <a href={href(["functions", cron.function])}>{cron.function}</a>}
          </td>
          <td>
            {cron.lastRun === null
              ? <span className="quiet">never</span>
              : <Time at={cron.lastRun} as="ago" />} {cron.lastState?.kind === "failed"
              ? (
                <a
                  href={href(["logs"], {
                    function: cron.function,
                    outcome: FAILURES,
                    ...cron.ofService && { system: "true" },
                  })}
                >
                  <State kind="failed" />
                </a>
              )
              : cron.lastState !== null && <State kind={cron.lastState.kind} />}
          </td>
          <td>
            {cron.nextRun === null
              ? <span className="quiet">never</span>
              : <Time at={cron.nextRun} as="ago" />}
          </td>
          <td className="number">
            <Button
              needs="editor"
              onClick={() => void attempt(() => runNow({ name: cron.name }), `${cron.name} started.`)}
            >
              Run now
            </Button>
          </td>
        </tr>
      )}
    />
  );
}

/** Units with their abbreviation and the word for one of them. */
const UNITS = [[86_400_000, "d", "day"], [3_600_000, "h", "hour"], [60_000, "min", "minute"]] as const;

function scheduleText(schedule: { readonly kind: string }): string {
  const { everyMs, expression } = schedule as { readonly everyMs?: number; readonly expression?: string };
  if (everyMs === undefined) return `${expression ?? schedule.kind} (UTC)`;
  // `duration` rounds, but a schedule is exact.
  const [ms, unit, one] = UNITS.find(([ms]) => everyMs % ms === 0) ?? [1_000, "s", "second"];
  return everyMs === ms ? `every ${one}` : `every ${tenths(everyMs / ms)} ${unit}`;
}

function State({ kind }: { readonly kind: StateKind }) {
  const { text, tone } = STATES[kind];
  return <Badge {...(tone && { tone })}>{text}</Badge>;
}

/** Choice of the state filter for jobs whose function is missing. */
const ORPHANED = "orphaned";

function Jobs() {
  const { search } = useRoute();
  const state = (search.get("state") ?? "") as StateKind | "";
  const orphaned = search.get("orphaned") === "true";
  const list = useLiveList(api.schedule.jobs, {
    ...(state !== "" && { state }),
    ...(orphaned && { orphaned }),
  });
  const retry = useMutation(api.schedule.retryJob);
  const cancel = useMutation(api.schedule.cancelJob);
  const runNow = useMutation(api.schedule.runJobNow);
  return (
    <Card
      flush
      title="Scheduled functions"
      actions={
        <select
          className="input fit"
          aria-label="State"
          value={orphaned ? ORPHANED : state}
          onChange={({ target: { value } }) =>
            replace(["schedule"], value === ORPHANED ? { orphaned: "true" } : { state: value })}
        >
          <option value="">All</option>
          {Object.entries(STATES).map(([kind, { text }]) => <option key={kind} value={kind}>{text}</option>)}
          <option value={ORPHANED}>function missing</option>
        </select>
      }
    >
      {list.results.length === 0 && list.status === "Exhausted" && <Empty title="No scheduled functions" />}
      {list.results.length > 0 && (
        <Table head={["Function", "Arguments", "State", "Due"]} actions>
          {list.results.map((job) => (
            <tr key={job.jobId}>
              <td>
                {job.orphaned || job.name.startsWith("_") ? <span className="mono">{job.name}</span> : (
                  <a
                    className="mono"
                    title="Open with these arguments"
                    href={href(["functions", job.name], { args: JSON.stringify(job.args, null, 2) })}
                  >
                    {job.name}
                  </a>
                )} {job.orphaned && <Badge tone="warn">function missing</Badge>}
              </td>
              <td className="mono args" title={JSON.stringify(job.args)}>{JSON.stringify(job.args)}</td>
              <td className={job.state.kind === "failed" ? "wrap" : undefined}>
                <State kind={job.state.kind} /> {job.retried && <Badge>retried</Badge>}{" "}
                {job.state.kind === "failed" && (
                  <a
                    className="small"
                    href={href(["logs"], {
                      function: job.name,
                      outcome: FAILURES,
                      ...job.name.startsWith("_") && { system: "true" },
                    })}
                  >
                    {job.state.error}
                  </a>
                )}
              </td>
              <td>
                <Time at={job.scheduledTime} as="ago" />
              </td>
              <td className="number">
                <span className="row end">
                  {(job.state.kind === "failed" || job.state.kind === "canceled") && !job.retried &&
                    !job.name.startsWith("_") && (
                    <Button
                      needs="editor"
                      onClick={() =>
                        void attempt(() => retry({ jobId: job.jobId }), `${job.name} scheduled again.`)}
                    >
                      Retry
                    </Button>
                  )}
                  {job.state.kind === "pending" && (
                    <Button
                      needs="editor"
                      onClick={() => void attempt(() => runNow({ jobId: job.jobId }))}
                    >
                      Run now
                    </Button>
                  )} {(job.state.kind === "pending" || job.state.kind === "inProgress") && (
                    <Button
                      tone="bad"
                      needs="editor"
                      onClick={() => void attempt(() => cancel({ jobId: job.jobId }), "Canceled.")}
                    >
                      Cancel
                    </Button>
                  )}
                </span>
              </td>
            </tr>
          ))}
        </Table>
      )}
      <ListEnd list={list} />
    </Card>
  );
}
