import { expect, test } from "vitest";
import { StagedDecisions } from "./staged-decisions.ts";

test("a decision is staged with the scope of its grant", () => {
  const staged = new StagedDecisions();
  staged.stage("a1", { remember: { where: ["recipient"], ttl: 60 } });
  staged.stage("a2", { remember: "chat" });
  expect(staged.body()).toEqual({
    remember: { a1: { where: ["recipient"], ttl: 60 }, a2: "chat" },
  });
});
