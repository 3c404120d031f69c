import { expect, test } from "vitest";
import { StagedDecisions } from "./staged-decision-extras.ts";

test("a decision is staged with its payload", () => {
  const staged = new StagedDecisions();
  staged.stage("a1", { payload: { approved_days: 3 } });
  staged.stage("a2", { payload: false, edit: { days: 2 } });
  expect(staged.body()).toEqual({
    edits: { a2: { days: 2 } },
    payload: { a1: { approved_days: 3 }, a2: false },
  });
});

test("a decision is staged with the scope of its grant", () => {
  const staged = new StagedDecisions();
  staged.stage("a1", { remember: { where: ["recipient"], ttl: 60 } });
  staged.stage("a2", { remember: "chat" });
  expect(staged.body()).toEqual({
    remember: { a1: { where: ["recipient"], ttl: 60 }, a2: "chat" },
  });
});
