import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { Grant } from "sluicegate";
import { listGrants, withdrawGrant } from "../api.ts";
import { Button } from "../components/button.tsx";
import { timeUntil } from "../components/duration.ts";
import { FieldTable } from "../components/field-table.tsx";
import { VisibleText } from "../components/visible-text.tsx";
import { errorMessage } from "../error-message.ts";
import { visibleName } from "../text-checks/hidden-characters.ts";

/** The time until which a grant is valid, in the language of the browser. */
function expiry({ expiresAt }: Grant): string {
  const until = new Date(expiresAt);
  return `Until ${until.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })} (${timeUntil(until.getTime() - Date.now())}).`;
}

interface GrantEntryProps {
  readonly grant: Grant;
  readonly onWithdraw: () => void;
}

function GrantEntry({ grant, onWithdraw }: GrantEntryProps) {
  const { agent, id, tool, where } = grant;
  const isScoped = Object.keys(where).length > 0;
  return (
    <li className="panel stack gap-2">
      <div className="row between nowrap start">
        <p className="text-sm">
          <VisibleText text={agent} /> can call{" "}
          <span className="mono">
            <VisibleText text={tool} />
          </span>{" "}
          {isScoped ? "with these values:" : "with any arguments."}
        </p>
        <Button
          className="no-shrink"
          size="sm"
          aria-label={`Ask again: ${visibleName(tool)}, ${visibleName(agent)}`}
          onClick={onWithdraw}
        >
          Ask again
        </Button>
      </div>
      {isScoped && <FieldTable value={where} label="Values" />}
      <p className="text-xs dim">
        {expiry(grant)}
        <br />
        Id: <VisibleText text={id} />
      </p>
    </li>
  );
}

/** The grants of a chat, with a button to withdraw each of them (A8). */
export function Grants({ chat }: { readonly chat: string }) {
  const client = useQueryClient();
  const queryKey = ["grants", chat];
  // Without the list the section is hidden; calls without a grant still request approval.
  const { data: grants = [] } = useQuery({ queryKey, queryFn: () => listGrants(chat) });
  const { error, mutate: withdraw } = useMutation({
    mutationFn: (id: string) => withdrawGrant(chat, id),
    onSuccess: (_, id) =>
      client.setQueryData<readonly Grant[]>(queryKey, (before) =>
        before?.filter((grant) => grant.id !== id),
      ),
  });
  if (grants.length === 0) return null;
  return (
    <section className="stack gap-2" aria-label="Always allowed">
      <p className="text-sm strong">Allowed without asking in this chat</p>
      <ul className="plain-list stack gap-2">
        {grants.map((grant) => (
          <GrantEntry key={grant.id} grant={grant} onWithdraw={() => withdraw(grant.id)} />
        ))}
      </ul>
      {error !== null && (
        <p className="text-sm danger" role="alert">
          {errorMessage(error)}
        </p>
      )}
    </section>
  );
}
