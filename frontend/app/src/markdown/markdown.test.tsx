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
