import { expect, test } from "vitest";
import { setBranding } from "../testing/branding.ts";
import { branding } from "./branding.ts";

test("a page without a theme has the default texts", () => {
  expect(branding()).toMatchObject({ title: "sluicegate", suggestions: [] });
});

test("the theme replaces only what it sets", () => {
  setBranding({ title: "Ada's <b>desk</b>", welcome: null, suggestions: ["Pay Ada"] });
  expect(branding()).toEqual({
    title: "Ada's <b>desk</b>",
    logo: "./favicon.svg",
    welcome: "What should the agent do?",
    suggestions: ["Pay Ada"],
  });
});
