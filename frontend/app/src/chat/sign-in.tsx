import { Button, Center, PasswordInput, Stack, Text } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { sentenceOf, signIn } from "../server.ts";

/** Asks for the token of a server that wants to know who calls. */
export function SignIn() {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<string>();
  const enter = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await signIn(token.trim());
      location.reload();
    } catch (error) {
      setProblem(sentenceOf(error));
    }
  };
  return (
    <Center h="100%" p="md">
      <form onSubmit={(event) => void enter(event)}>
        <Stack maw={360}>
          <Text>This server wants to know who you are.</Text>
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
