import { type FormEvent, useState } from "react";
import { signIn } from "./api.ts";
import { branding } from "./branding.ts";
import { Button } from "./components/button.tsx";
import { TextField } from "./components/text-field.tsx";
import { errorMessage } from "./error-message.ts";

/** A form for the token of a server that requires authentication. */
export function SignIn() {
  const [{ title, logo }] = useState(branding);
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<string>();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await signIn(token.trim());
      location.reload();
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  return (
    <div className="centered">
      <form className="stack sign-in" onSubmit={(event) => void submit(event)}>
        <img className="sign-in-logo" src={logo} alt="" />
        <h2>Sign in to {title}</h2>
        <TextField
          type="password"
          label="Token"
          autoComplete="current-password"
          value={token}
          error={problem}
          onChange={setToken}
        />
        <Button type="submit" variant="primary" disabled={token.trim() === ""}>
          Sign in
        </Button>
      </form>
    </div>
  );
}
