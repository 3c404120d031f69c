import { useState } from "react";
import { Button } from "../components/button.tsx";
import { Select } from "../components/select.tsx";
import { visibleName } from "../text-checks/hidden-characters.ts";
import type { Approval } from "./approval.ts";
import { ApprovalRow } from "./approval-row.tsx";
import { type Filter, NO_FILTER } from "./inbox-api.ts";
import { useApprovalList } from "./use-inbox.ts";

const AGES = [
  { value: "", label: "Any age" },
  { value: "900", label: "Older than 15 minutes" },
  { value: "3600", label: "Older than an hour" },
  { value: "86400", label: "Older than a day" },
];

/** The options of a filter: the values that occur, and the chosen one. */
function options(all: string, values: readonly string[], chosen: string) {
  const found = [...new Set([...values, chosen])].filter((value) => value !== "").sort();
  return [
    { value: "", label: all },
    ...found.map((value) => ({ value, label: visibleName(value) })),
  ];
}

interface FiltersProps {
  readonly known: readonly Approval[];
  readonly filter: Filter;
  readonly onFilter: (filter: Filter) => void;
}

function Filters({ known, filter, onFilter }: FiltersProps) {
  const tools = known.map(({ tool }) => tool);
  const agents = known.map(({ agent }) => agent);
  return (
    <search className="inbox-filters" aria-label="Filter the approvals">
      <Select
        aria-label="Tool"
        options={options("All tools", tools, filter.tool)}
        value={filter.tool}
        onChange={(tool) => onFilter({ ...filter, tool })}
      />
      <Select
        aria-label="Agent"
        options={options("All agents", agents, filter.agent)}
        value={filter.agent}
        onChange={(agent) => onFilter({ ...filter, agent })}
      />
      <Select
        aria-label="Age"
        options={AGES}
        value={filter.olderThan}
        onChange={(olderThan) => onFilter({ ...filter, olderThan })}
      />
    </search>
  );
}

interface SelectionProps {
  readonly ids: readonly string[];
  readonly selected: ReadonlySet<string>;
  readonly onSelect: (selected: ReadonlySet<string>) => void;
  readonly onOpen: (ids: readonly string[]) => void;
}

/** What can be done with the selected approvals: their cards come first. */
function Selection({ ids, selected, onSelect, onOpen }: SelectionProps) {
  const chosen = ids.filter((id) => selected.has(id));
  const isAll = chosen.length === ids.length;
  return (
    <div className="row between">
      <Button size="sm" variant="subtle" onClick={() => onSelect(new Set(isAll ? [] : ids))}>
        {isAll ? "Select none" : `Select all ${ids.length}`}
      </Button>
      {chosen.length > 0 && (
        <Button variant="primary" onClick={() => onOpen(chosen)}>
          {chosen.length === 1 ? "Review 1 approval" : `Review ${chosen.length} approvals`}
        </Button>
      )}
    </div>
  );
}

/** The approvals that wait, over all chats. */
export function WaitingList({ onOpen }: { readonly onOpen: (ids: readonly string[]) => void }) {
  const [filter, setFilter] = useState(NO_FILTER);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const list = useApprovalList("waiting", filter);
  const all = useApprovalList("waiting", NO_FILTER);
  const ids = list.approvals.map(({ approvalId }) => approvalId);
  const isFiltered = Object.values(filter).some((value) => value !== "");
  const select = (id: string, isSelected: boolean) => {
    const next = new Set(selected);
    if (isSelected) next.add(id);
    else next.delete(id);
    setSelected(next);
  };
  return (
    <div className="stack">
      <Filters known={all.approvals} filter={filter} onFilter={setFilter} />
      {list.problem !== undefined && (
        <p className="danger" role="alert">
          {list.problem}
        </p>
      )}
      {ids.length > 0 && (
        <Selection ids={ids} selected={selected} onSelect={setSelected} onOpen={onOpen} />
      )}
      <ul className="plain-list approval-list" aria-label="Waiting approvals">
        {list.approvals.map((approval) => (
          <ApprovalRow
            key={approval.approvalId}
            approval={approval}
            isSelected={selected.has(approval.approvalId)}
            onSelect={(isSelected) => select(approval.approvalId, isSelected)}
            onOpen={() => onOpen([approval.approvalId])}
          />
        ))}
      </ul>
      {list.isLoaded && ids.length === 0 && (
        <p className="dim" role="status">
          {isFiltered ? "No approval matches." : "Nothing waits for you."}
        </p>
      )}
      {list.hasMore && (
        <div>
          <Button onClick={() => void list.loadMore()}>Show more</Button>
        </div>
      )}
    </div>
  );
}
