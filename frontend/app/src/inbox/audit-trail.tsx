import "../components/table.css";
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "../components/button.tsx";
import { TextField } from "../components/text-field.tsx";
import { VisibleText } from "../components/visible-text.tsx";
import { errorMessage } from "../error-message.ts";
import { momentText } from "../moment-text.ts";
import { APPROVALS_KEY } from "../sync/approvals-key.ts";
import { useDebounced } from "../use-debounced.ts";
import { useSession } from "../use-session.ts";
import { exportUrl, type HistoryEntry, loadHistory, verifyHistory } from "./inbox-api.ts";

/** Milliseconds without a key press before a search. */
const SEARCH_DELAY = 200;

/** Whether the whole trail is as it was written. */
function Verification() {
  const { data, error } = useQuery({ queryKey: ["verification"], queryFn: verifyHistory });
  if (error !== null) {
    return (
      <p className="text-sm danger" role="alert">
        {errorMessage(error)}
      </p>
    );
  }
  if (data === undefined) return <p className="text-sm dim">The trail is being verified…</p>;
  const checked = momentText(Date.parse(data.checkedAt));
  if (data.state === "intact") {
    return (
      <p className="text-sm">
        <span className="strong">✓ Verified:</span> every line of the audit trail is as it was
        written <span className="dim">({checked})</span>.
      </p>
    );
  }
  return (
    <p className="text-sm danger" role="alert">
      The audit trail is broken. {data.detail} ({checked})
    </p>
  );
}

interface EntryProps {
  readonly entry: HistoryEntry;
  readonly hasRequester: boolean;
}

function Entry({ entry, hasRequester }: EntryProps) {
  return (
    <tr>
      <td>
        <time dateTime={entry.at}>{momentText(Date.parse(entry.at))}</time>
      </td>
      <td>{entry.action.replace("_", " ")}</td>
      <td>
        <VisibleText text={entry.tool} />
      </td>
      {hasRequester && (
        <td>
          <VisibleText text={entry.requester} />
        </td>
      )}
      <td>{entry.by !== undefined && <VisibleText text={entry.by} />}</td>
      <td>{entry.reason !== undefined && <VisibleText text={entry.reason} />}</td>
    </tr>
  );
}

/** The audit trail, as far as the user may see it. */
export function AuditTrail() {
  const [text, setText] = useState("");
  const searched = useDebounced(text, SEARCH_DELAY);
  const { data, error, hasNextPage, fetchNextPage } = useInfiniteQuery({
    queryKey: [...APPROVALS_KEY, "history", searched],
    queryFn: ({ pageParam }) => loadHistory(searched, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    placeholderData: keepPreviousData,
  });
  const { data: session } = useSession();
  const entries = data?.pages.flatMap((page) => page.entries) ?? [];
  // A person who decides for others sees these decisions, and an auditor those of all users.
  const user = session?.user ?? undefined;
  const hasRequester = user !== undefined && entries.some(({ requester }) => requester !== user);
  return (
    <div className="stack">
      <Verification />
      <div className="row between history-tools">
        <TextField
          type="search"
          aria-label="Search the history"
          placeholder="Search tool, person, reason, chat"
          value={text}
          onChange={setText}
        />
        <p className="text-sm">
          Download: <a href={exportUrl("csv", searched)}>CSV</a>,{" "}
          <a href={exportUrl("json", searched)}>JSON</a>
        </p>
      </div>
      {error !== null && (
        <p className="danger" role="alert">
          {errorMessage(error)}
        </p>
      )}
      {entries.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the focus.
        <section className="history-scroll" tabIndex={0} aria-label="History of approvals">
          <table className="table">
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">What</th>
                <th scope="col">Tool</th>
                {hasRequester && <th scope="col">For</th>}
                <th scope="col">By</th>
                <th scope="col">Reason</th>
              </tr>
            </thead>
            <tbody>
              {entries.map((entry) => (
                <Entry key={entry.id} entry={entry} hasRequester={hasRequester} />
              ))}
            </tbody>
          </table>
        </section>
      )}
      {data !== undefined && entries.length === 0 && (
        <p className="dim" role="status">
          {searched === "" ? "Nothing has been decided yet." : "Nothing matches."}
        </p>
      )}
      {hasNextPage && (
        <div>
          <Button onClick={() => void fetchNextPage()}>Show more</Button>
        </div>
      )}
    </div>
  );
}
