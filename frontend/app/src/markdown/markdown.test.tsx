import { screen, waitFor, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { renderPage } from "../../testing/render.tsx";
import { Markdown } from "./markdown.tsx";

const rendered = (text: string) => renderPage(<Markdown text={text} />).content;

test.each([
  "[press](javascript:alert(1))",
  "[press](JaVaScRiPt:alert(1))",
  "[press](data:text/html,<script>alert(1)</script>)",
  "[press](vbscript:x)",
  "[press](blob:http://localhost/x)",
  "<a href='javascript:alert(1)'>press</a>",
  "[press][x]\n\n[x]: javascript:alert(1)",
])("%s is not a link", (text) => {
  expect(rendered(text).querySelector("a[href]")).toBeNull();
  expect(rendered(text).textContent).toContain("press");
});

test("a link opens a new tab without opener and referrer", () => {
  const link = rendered("[a](https://a.example/x)").querySelector("a");
  expect(link?.href).toBe("https://a.example/x");
  expect(link?.target).toBe("_blank");
  expect(link?.rel).toBe("noopener noreferrer");
});

test("HTML is rendered as text", () => {
  const text = "<img src=x onerror=alert(1)>\n\n<script>alert(1)</script>\n\n<b>bold</b>";
  expect(rendered(text).querySelector("img, script, b, style, iframe")).toBeNull();
  expect(rendered(text).textContent).toContain("<script>alert(1)</script>");
});

test.each(["https://evil.example/x.png", "//evil.example/x.png", "/other.png"])(
  "the image %s is not loaded, its name is shown",
  (url) => {
    const container = rendered(`![a picture](${url})`);
    expect(container.querySelector("img")).toBeNull();
    expect(container.textContent).toBe("Image: a picture");
  },
);

test("a stored image is shown", () => {
  const image = rendered("![a chart](/api/chats/c1/files/chart.png)").querySelector("img");
  expect(image?.getAttribute("src")).toBe("/api/chats/c1/files/chart.png");
});

test("a very long block is rendered as plain text", () => {
  const word = "*x*".repeat(70_000);
  expect(rendered(word).querySelector("em")).toBeNull();
  expect(rendered(word).textContent === word).toBe(true);
});

test("tables, lists and code blocks with a copy button are rendered", () => {
  const container = rendered(
    "| a |\n| - |\n| 1 |\n\n- [ ] one\n\n```js\nlet a;\n```\n\n    indented",
  );
  expect(container.querySelectorAll("table td")).toHaveLength(1);
  expect(container.querySelectorAll("li")).toHaveLength(1);
  expect([...container.querySelectorAll("pre")].map((pre) => pre.textContent)).toEqual([
    "let a;",
    "indented",
  ]);
  expect(container.querySelectorAll('[aria-label="Copy code"]')).toHaveLength(2);
});

test("headings are below those of the page", () => {
  const container = rendered("# One\n\n###### Six");
  expect(container.querySelectorAll("h1, h2, h4, h5, h6")).toHaveLength(0);
  expect(container.querySelectorAll("h3")).toHaveLength(2);
});

test.each([
  "one\r\ntwo\r\n\r\nthree",
  "one\rtwo\r\rthree",
  "one\u2028two\u2029three",
  "one\u0085two\n\nthree",
])("no character of %j vanishes", (text) => {
  expect(rendered(text).textContent?.replaceAll(/[^a-z]/g, "")).toBe("onetwothree");
});

test("indented code with a blank line is one block of code", () => {
  const container = rendered("    one\n\n    two");
  expect(container.querySelector("pre")?.textContent).toBe("one\n\ntwo");
});

test("footnotes of two texts have different ids, and link to their references", () => {
  const text = "One[^a], two[^b] and one[^a].\n\n[^b]: Second.\n[^a]: First, see[^b].";
  const { content } = renderPage([
    <Markdown key={1} text={text} />,
    <Markdown key={2} text={text} />,
  ]);
  const ids = [...content.querySelectorAll("[id]")].map(({ id }) => id);
  expect(ids).toHaveLength(8);
  expect(new Set(ids).size).toBe(ids.length);
  for (const link of content.querySelectorAll<HTMLAnchorElement>("a[href^='#']")) {
    expect(ids).toContain(link.hash.slice(1));
    expect(link.target).toBe("");
  }
  const [notes] = screen.getAllByRole("region", { name: "Footnotes" });
  const items = within(notes as HTMLElement).getAllByRole("listitem");
  expect(items.map(({ textContent }) => textContent)).toEqual(["First, see2.↩", "Second.↩"]);
});

test("a footnote without a reference is not lost", () => {
  expect(rendered("Text.\n\n[^a]: A note.").textContent).toContain("A note.");
});

test("formulas are rendered as MathML without styles, and a dollar is a currency", async () => {
  const text =
    "Pay $5 or $10, \\(a^2\\) and\n\n\\[\n\\fcolorbox{red}{blue}{b}\n- c\n\\]\n\n$$ d $$";
  const container = rendered(text);
  await waitFor(() => expect(container.querySelectorAll("math")).toHaveLength(3));
  expect(container.querySelector("math msup")?.textContent).toBe("a2");
  expect(container.querySelector("[style], annotation, a")).toBeNull();
  expect(container.textContent).toContain("Pay $5 or $10, ");
});

test("a formula that is not valid is shown as it is", () => {
  expect(rendered("\\(\\unknown{\\)").textContent).toBe("\\unknown{");
});

test("code is highlighted when the highlighter is loaded", async () => {
  const container = rendered("```js\nconst a = 1; // one\n```");
  await waitFor(() => expect(container.querySelector(".hljs-keyword")?.textContent).toBe("const"));
  expect(container.querySelector("pre")?.textContent).toBe("const a = 1; // one");
});

test("each block has the direction of its text, and code has one direction", () => {
  const container = rendered("مرحبا\n\n- [x] one\n\n> two\n\n| a |\n| - |\n\n```\nx\n```");
  for (const name of ["p", "ul", "li", "blockquote", "th"]) {
    expect(container.querySelector(name)?.getAttribute("dir")).toBe("auto");
  }
  expect(container.querySelector("pre")?.closest("[dir]")?.getAttribute("dir")).toBe("ltr");
  expect(screen.getByRole<HTMLInputElement>("checkbox", { name: "Done" }).checked).toBe(true);
});
