/** Sources of a version, or its differences from another one, by file. */
import type { StructuredPatchHunk } from "diff";
import { useEffect, useMemo, useRef, useState } from "react";
import { href, replace, useRoute } from "../../shell/route.ts";
import { Badge, ChoiceField } from "../../ui/controls.tsx";
import { countOf, timeText } from "../../ui/format.tsx";
import { Card, Empty, Loading, View } from "../../ui/view.tsx";
import {
  chosenPath,
  diffSources,
  type FileDiff,
  lineOfExport,
  readSources,
  type Sources,
} from "./sources.ts";

interface KnownVersion {
  readonly hash: string;
  readonly deployedAt: number;
  readonly current: boolean;
  readonly message: string | null;
}

const HASH_CHARS = 12;
const TONES = { added: "good", removed: "bad", changed: "warn" } as const;

export function VersionPage({ hash, versions }: {
  readonly hash: string;
  readonly versions: readonly KnownVersion[];
}) {
  const { search } = useRoute();
  const other = search.get("compare") ?? "";
  const file = search.get("file") ?? "";
  const now = useSources(hash);
  const before = useSources(other === "" ? null : other);
  const diffs = useMemo(
    () => before?.sources && now?.sources ? diffSources(before.sources, now.sources) : null,
    [before?.sources, now?.sources],
  );
  const comparing = other !== "";
  const error = now?.error ?? (comparing ? before?.error : null) ?? null;
  const ready = comparing ? diffs !== null : now?.sources !== undefined;
  const paths = comparing ? diffs?.map(({ path }) => path) ?? [] : [...now?.sources?.keys() ?? []];
  const chosen = chosenPath(paths, file);
  const text = now?.sources?.get(chosen ?? "") ?? "";
  const line = Number(search.get("line") ?? lineOfExport(text, search.get("export") ?? ""));
  const name = (version: string) => version.slice(0, HASH_CHARS);
  const message = versions.find((version) => version.hash === hash)?.message;
  return (
    <View
      title={comparing ? `${name(hash)} compared with ${name(other)}` : `Sources of ${name(hash)}`}
      text={message ?? "The app's own files, without npm packages."}
      actions={
        <>
          <ChoiceField
            label="Compare with"
            value={other}
            options={[
              ["", "No comparison"],
              ...versions.filter((version) => version.hash !== hash).map(({ hash, deployedAt, current }) =>
                [hash, `${hash.slice(0, 7)} ${current ? "live" : timeText(deployedAt)}`] as const
              ),
            ]}
            onChange={(compare) => replace(["versions", hash], { compare })}
          />
          <a className="button" href={href(["versions"])}>All versions</a>
        </>
      }
    >
      {error !== null && <p className="field-error" role="alert">{error}</p>}
      {error === null && !ready && <Loading />}
      {ready && paths.length === 0 && (
        <Empty title={comparing ? "The sources are the same" : "No sources"}>
          {(!now?.sources?.size || (comparing && !before?.sources?.size)) && (
            <p>
              A version that was deployed by an earlier release has no sources. Deploy it again to see them.
            </p>
          )}
        </Empty>
      )}
      {ready && chosen !== undefined && (
        <div className="sources">
          <nav aria-label="Files">
            <ul className="nav">
              {paths.map((path) => (
                <li key={path}>
                  <a
                    href={href(["versions", hash], { compare: other, file: path })}
                    aria-current={path === chosen ? "true" : undefined}
                  >
                    <span className="grow">{path}</span>
                    <ChangeBadge diff={diffs?.find((diff) => diff.path === path)} />
                  </a>
                </li>
              ))}
            </ul>
          </nav>
          <Card flush title={<span className="mono">{chosen}</span>}>
            {comparing ? <Differences diff={diffs?.find(({ path }) => path === chosen)} /> : (
              <Source
                key={`${hash} ${chosen} ${line}`}
                text={text}
                line={line}
              />
            )}
          </Card>
        </div>
      )}
    </View>
  );
}

interface Reading {
  readonly hash: string;
  readonly sources?: Sources;
  readonly error: string | null;
}

/** Returns `undefined` while the version is read. */
function useSources(hash: string | null): Reading | undefined {
  const [reading, setReading] = useState<Reading>();
  useEffect(() => {
    let over = false;
    if (hash === null) return;
    readSources(hash).then(
      (sources) => over || setReading({ hash, sources, error: null }),
      (error) => over || setReading({ hash, error: error instanceof Error ? error.message : String(error) }),
    );
    return () => {
      over = true;
    };
  }, [hash]);
  return reading?.hash === hash ? reading : undefined;
}

function ChangeBadge({ diff }: { readonly diff: FileDiff | undefined }) {
  if (diff === undefined) return null;
  const { change, added, removed } = diff;
  const lines = `${countOf(added, "line")} added, ${removed} removed`;
  return (
    <Badge tone={TONES[change]}>
      <span title={lines}>{change === "changed" ? `+${added} −${removed}` : change}</span>
    </Badge>
  );
}

/** @param line Line that is marked and scrolled to; 0 for none. */
function Source({ text, line: marked }: { readonly text: string; readonly line: number }) {
  const row = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    // Returns a promise in some browsers.
    void row.current?.scrollIntoView({ block: "center" });
  }, []);
  return (
    <table className="code">
      <tbody>
        {text.replace(/\n$/, "").split("\n").map((line, index) => (
          <tr
            key={index}
            {...index + 1 === marked && { ref: row, "aria-current": "true" as const }}
          >
            <td data-line={index + 1} />
            <td>{line}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Differences({ diff }: { readonly diff: FileDiff | undefined }) {
  if (diff === undefined) return null;
  if (diff.hunks === null) {
    return <Empty title="The file differs too much to compare it line by line" />;
  }
  return (
    <table className="code">
      {diff.hunks.map((hunk) => <Hunk key={`${hunk.oldStart} ${hunk.newStart}`} hunk={hunk} />)}
    </table>
  );
}

/** Names a range of lines. An added or removed file has no lines on the other side. */
function linesOf(start: number, lines: number): readonly string[] {
  return lines === 0 ? [] : [`${start} to ${start + lines - 1}`];
}

const CHANGES: Readonly<Record<string, string>> = { "+": "added", "-": "removed" };

function Hunk(
  { hunk: { oldStart, oldLines, newStart, newLines, lines } }: { readonly hunk: StructuredPatchHunk },
) {
  let [old, now] = [oldStart, newStart];
  return (
    <tbody>
      <tr data-change="hunk">
        <td colSpan={4}>
          {`Lines ${[linesOf(oldStart, oldLines), linesOf(newStart, newLines)].flat().join(" and ")}`}
        </td>
      </tr>
      {lines.map((line, index) => {
        const sign = line.charAt(0);
        if (sign === "\\") return null;
        return (
          <tr key={index} data-change={CHANGES[sign]}>
            <td data-line={sign === "+" ? "" : old++} />
            <td data-line={sign === "-" ? "" : now++} />
            <td>{sign}</td>
            <td>{line.slice(1)}</td>
          </tr>
        );
      })}
    </tbody>
  );
}
