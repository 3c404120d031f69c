import { LogOut, UserRound } from "lucide-react";
import { useEffect, useState } from "react";
import { Button } from "./components/button.tsx";
import { errorMessage } from "./error-message.ts";
import { becomeDemoUser, signOut, watchUser } from "./session.ts";
import { useSession } from "./use-session.ts";

/** The name of the user, and a button to sign out; nothing on a server without authentication. */
export function SignedInUser() {
  const { data: session } = useSession();
  const [problem, setProblem] = useState<string>();
  const canSignOut = session?.canSignOut === true;
  const canChange = canSignOut || session?.demoUsers !== undefined;
  useEffect(() => (canChange ? watchUser() : undefined), [canChange]);
  if (session === undefined || session.user === null) return null;
  const leave = async () => {
    try {
      await signOut();
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  return (
    <div className="identity">
      <div className="row nowrap between">
        <span className="ellipsis text-sm" title={session.user}>
          <span className="visually-hidden">Signed in as </span>
          {session.user}
        </span>
        {canSignOut && (
          <Button
            variant="subtle"
            size="sm"
            className="no-shrink"
            icon={<LogOut size={16} />}
            onClick={() => void leave()}
          >
            Sign out
          </Button>
        )}
      </div>
      {session.demoUsers
        ?.filter((user) => user !== session.user)
        .map((user) => (
          <Button
            key={user}
            variant="subtle"
            size="sm"
            icon={<UserRound size={16} />}
            onClick={() => becomeDemoUser(user)}
          >
            Continue as {user}
          </Button>
        ))}
      {problem !== undefined && (
        <p className="text-sm danger" role="alert">
          {problem}
        </p>
      )}
    </div>
  );
}
