import { QueryClientProvider } from "@tanstack/react-query";
import { render, screen, waitFor } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { beforeEach, expect, test } from "vitest";
import { createQueryClient } from "../src/query-client.ts";
import { Playground } from "./playground.tsx";

const WAIT = { timeout: 30_000 };

beforeEach(() => {
  const theme = document.createElement("meta");
  theme.name = "sluicegate-page";
  theme.content = JSON.stringify({ suggestions: ["Pay Ada 5 euros"] });
  document.head.replaceChildren(theme);
});

test("a visitor approves the recorded payment, and plays it again", async () => {
  render(
    <QueryClientProvider client={createQueryClient()}>
      <Playground />
    </QueryClientProvider>,
  );
  const user = userEvent.setup();
  await user.click(screen.getByRole("button", { name: "Pay Ada 5 euros" }));
  const approve = await screen.findByRole("button", { name: /^Approve/ }, WAIT);
  await waitFor(() => expect(approve.getAttribute("aria-disabled")).not.toBe("true"), WAIT);
  await user.click(approve);
  await screen.findByText(/Ada has received 5 euros/, {}, WAIT);

  await user.click(await screen.findByRole("button", { name: "Play again" }, WAIT));
  expect(screen.getByRole("button", { name: "Pay Ada 5 euros" })).toBeDefined();
});
