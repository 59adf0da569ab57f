/** The app's functions by module. Each can be run under any identity, and queries can be watched live. */
import { useMemo } from "react";
import { useQuery } from "syncline/react";
import type { FunctionFacts } from "../../../../mod/functions/api/system_context.ts";
import { api } from "../../server/api.ts";
import { href, replace, useRoute } from "../../shell/route.ts";
import { Badge, ChoiceField } from "../../ui/controls.tsx";
import { Empty, Loading, View } from "../../ui/view.tsx";
import { AllFunctions, KindBadge } from "./performance.tsx";
import { FunctionPage } from "./function_page.tsx";
import { ApiCard } from "./reference.tsx";

export function Functions() {
  const { path: [, chosen], search } = useRoute();
  const filter = search.get("search") ?? "";
  const kind = search.get("kind") ?? "";
  const shown = { search: filter, kind };
  const functions = useQuery(api.functions.list);
  const files = useMemo(() => {
    const byFile = new Map<string, NonNullable<typeof functions>[number][]>();
    for (const fact of functions ?? []) {
      if (fact.ofService || !isKind(fact, kind) || !fact.path.toLowerCase().includes(filter.toLowerCase())) {
        continue;
      }
      const file = fact.path.includes(":") ? fact.path.slice(0, fact.path.lastIndexOf(":")) : "index";
      byFile.set(file, [...byFile.get(file) ?? [], fact]);
    }
    return [...byFile];
  }, [functions, filter, kind]);
  // The arguments of a link stay in the address: without them, the function would be opened again.
  const args = search.get("args") ?? "";
  const filterBy = (changes: Partial<typeof shown>) =>
    replace(["functions", ...(chosen === undefined ? [] : [chosen])], { ...shown, ...changes, args });
  const fact = functions?.find(({ path }) => path === chosen);
  return (
    <View
      title="Functions"
      text="Queries, mutations and actions of the app, and how to call them over its API."
    >
      {functions === undefined ? <Loading /> : (
        <div className="split" data-chosen={fact !== undefined}>
          <nav className="split-list" aria-label="Functions">
            <input
              className="input"
              type="search"
              placeholder="Filter"
              aria-label="Filter functions"
              value={filter}
              onChange={(event) => filterBy({ search: event.target.value })}
            />
            <ChoiceField
              label="Kind"
              value={kind}
              onChange={(kind) => filterBy({ kind })}
              options={[
                ["", "All kinds"],
                ["query", "Queries"],
                ["mutation", "Mutations"],
                ["action", "Actions"],
                ["internal", "Internal functions"],
              ]}
            />
            {files.length === 0 && <Empty title="No matching functions" />}
            {files.map(([file, members]) => (
              <section key={file}>
                <h2 className="mono">{file}</h2>
                <ul className="nav">
                  {members.map(({ path, kind, visibility }) => (
                    <li key={path}>
                      <a
                        href={href(["functions", path], shown)}
                        aria-current={path === chosen ? "page" : undefined}
                      >
                        <span className="grow">{path.slice(path.lastIndexOf(":") + 1)}</span>
                        {visibility === "internal" && <Badge>internal</Badge>}
                        <KindBadge kind={kind} />
                      </a>
                    </li>
                  ))}
                </ul>
              </section>
            ))}
          </nav>
          <div className="split-main">
            {fact !== undefined && <a className="back" href={href(["functions"], shown)}>All functions</a>}
            {fact === undefined
              ? chosen === undefined
                ? (
                  <>
                    <AllFunctions />
                    <ApiCard />
                  </>
                )
                : <Empty title="Function not found" />
              : <FunctionPage key={`${fact.path} ${args}`} fact={fact} />}
          </div>
        </div>
      )}
    </View>
  );
}

function isKind({ kind, visibility }: FunctionFacts, wanted: string): boolean {
  return wanted === "" || wanted === (wanted === "internal" ? visibility : kind);
}
