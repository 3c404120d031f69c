import { Button, Center, PasswordInput, Stack, Text } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { errorMessage, signIn } from "../api.ts";

/** A form for the token of a server that requires authentication. */
export function SignIn() {
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
    <Center h="100%" p="md">
      <form onSubmit={(event) => void submit(event)}>
        <Stack maw={360}>
          <Text>Sign in to use this server.</Text>
          <PasswordInput
            label="Token"
            autoComplete="current-password"
            value={token}
            error={problem}
            onChange={(event) => setToken(event.currentTarget.value)}
          />
          <Button type="submit" disabled={token.trim() === ""}>
            Sign in
          </Button>
        </Stack>
      </form>
    </Center>
  );
}
