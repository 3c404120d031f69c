import { expect, test } from "vitest";
import { draw } from "../../testing/draw.tsx";
import { Markdown } from "./markdown.tsx";

const drawn = (text: string) => draw(<Markdown text={text} />).content;

test.each([
  "[press](javascript:alert(1))",
  "[press](JaVaScRiPt:alert(1))",
  "[press](data:text/html,<script>alert(1)</script>)",
  "[press](vbscript:x)",
  "[press](blob:http://localhost/x)",
  "<a href='javascript:alert(1)'>press</a>",
  "[press][x]\n\n[x]: javascript:alert(1)",
])("%s leads nowhere", (text) => {
  expect(drawn(text).querySelector("a[href]")).toBeNull();
  expect(drawn(text).textContent).toContain("press");
});

test("a link opens elsewhere and tells that page nothing", () => {
  const link = drawn("[a](https://a.example/x)").querySelector("a");
  expect(link?.href).toBe("https://a.example/x");
  expect(link?.target).toBe("_blank");
  expect(link?.rel).toBe("noopener noreferrer");
});

test("HTML is text", () => {
  const text = "<img src=x onerror=alert(1)>\n\n<script>alert(1)</script>\n\n<b>bold</b>";
  expect(drawn(text).querySelector("img, script, b, style, iframe")).toBeNull();
  expect(drawn(text).textContent).toContain("<script>alert(1)</script>");
});

test.each(["https://evil.example/x.png", "//evil.example/x.png", "/other.png"])(
  "the picture %s is not loaded but named",
  (address) => {
    const container = drawn(`![a picture](${address})`);
    expect(container.querySelector("img")).toBeNull();
    expect(container.textContent).toBe("Image: a picture");
  },
);

test("a picture that the server keeps is shown", () => {
  const image = drawn("![a chart](/api/chats/c1/files/chart.png)").querySelector("img");
  expect(image?.getAttribute("src")).toBe("/api/chats/c1/files/chart.png");
});

test("a block beyond all measure is shown as it was written", () => {
  const word = "*x*".repeat(70_000);
  expect(drawn(word).querySelector("em")).toBeNull();
  expect(drawn(word).textContent === word).toBe(true);
});

test("tables, lists and code are drawn, and code can be copied", () => {
  const container = drawn("| a |\n| - |\n| 1 |\n\n- [ ] one\n\n```js\nlet a;\n```\n\n    indented");
  expect(container.querySelectorAll("table td")).toHaveLength(1);
  expect(container.querySelectorAll("li")).toHaveLength(1);
  expect([...container.querySelectorAll("pre")].map((pre) => pre.textContent)).toEqual([
    "let a;",
    "indented",
  ]);
  expect(container.querySelectorAll('[aria-label="Copy code"]')).toHaveLength(2);
});

test("headings stand below those of the page", () => {
  const container = drawn("# One\n\n###### Six");
  expect(container.querySelectorAll("h1, h2, h4, h5, h6")).toHaveLength(0);
  expect(container.querySelectorAll("h3")).toHaveLength(2);
});
