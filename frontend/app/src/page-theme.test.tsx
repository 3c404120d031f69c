import { expect, test } from "vitest";
import { setPageTheme } from "../testing/page-theme.ts";
import { pageTheme } from "./page-theme.ts";

test("a page without a theme has the default texts", () => {
  expect(pageTheme()).toMatchObject({ title: "sluicegate", suggestions: [] });
});

test("the theme replaces only what it sets", () => {
  setPageTheme({ title: "Ada's <b>desk</b>", welcome: null, suggestions: ["Pay Ada"] });
  expect(pageTheme()).toEqual({
    title: "Ada's <b>desk</b>",
    logo: "./favicon.svg",
    welcome: "What should the agent do?",
    suggestions: ["Pay Ada"],
  });
});
