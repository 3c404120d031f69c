import { expect, test } from "vitest";
import { textFindings, valueFindings } from "./findings.ts";

test.each([
  "Pay Ada 50 €, please!",
  "Zürich, Œuvre, naïve, İstanbul ığdır",
  "Москва",
  "Я живу у озера",
  "Ελλάδα",
  "東京タワー、ひらがな",
  "Tシャツ 東京 ＡＢＣは１２３",
  "A股 Shanghai 上海",
  "K팝 한국어 中文",
  "עברית",
  "हिन्दी",
  "❤️ 👨‍👩‍👧 1️⃣",
  "E = mc², 20 °C, ½, ™",
])("nothing is found in %j", (text) => {
  expect(textFindings(text)).toEqual([]);
});

test.each([
  ["pаypal", "Contains Cyrillic ‘а’ (U+0430) among Latin letters."],
  ["αpple and gοοgle", "Contains Greek ‘α’ (U+03B1), Greek ‘ο’ (U+03BF) among Latin letters."],
  [
    "Мoсква",
    "Contains Cyrillic ‘М’ (U+041C), Cyrillic ‘с’ (U+0441), Cyrillic ‘к’ (U+043A), Cyrillic ‘в’ (U+0432) and 1 more among Latin letters.",
  ],
  ["αλфа", "Contains Cyrillic ‘ф’ (U+0444), Cyrillic ‘а’ (U+0430) among Greek letters."],
  ["рау", "Looks like “pay”, but is written with Cyrillic letters."],
  ["send to раура now", "Looks like “paypa”, but is written with Cyrillic letters."],
  ["Ꭺꮪꮪ", "Looks like “Ass”, but is written with Cherokee letters."],
  ["Ada Лавлейс", "Contains letters of several scripts: Latin and Cyrillic."],
  ["Ελλάδα, 東京", "Contains letters of several scripts: Greek and Han."],
  ["ɡoogle", "‘ɡ’ (U+0261) looks like ‘g’."],
  ["𝐩ay", "‘𝐩’ (U+1D429) looks like ‘p’."],
  ["https://bank.example∕pay", "‘∕’ (U+2215) looks like ‘/’."],
  ["ｐay", "‘ｐ’ (U+FF50) looks like ‘p’."],
  ["1٠0", "Contains digits of several scripts."],
  ["5\u0336", "Contains combining marks that obscure a character: U+0336."],
  [
    "a\u202eb",
    "Contains U+202E (right-to-left override), which changes the order of the displayed text.",
  ],
  [
    "a\u200b\u00ad",
    "Contains invisible characters: U+200B (zero width space), U+00AD (soft hyphen).",
  ],
])("a finding in %j", (text, finding) => {
  expect(textFindings(text)).toEqual([finding]);
});

test("several findings are listed", () => {
  expect(textFindings("pаy\u202e\u200b")).toHaveLength(3);
});

test("findings in a value have its path, in keys too", () => {
  const value = JSON.parse('{"items":[{"name":"pаy"}],"__proto__":"рау","kеy":1}');
  expect(valueFindings(value)).toEqual([
    {
      path: "items[0].name",
      finding: "Contains Cyrillic ‘а’ (U+0430) among Latin letters.",
    },
    { path: "__proto__", finding: "Looks like “pay”, but is written with Cyrillic letters." },
    { path: "kеy", finding: "Contains Cyrillic ‘е’ (U+0435) among Latin letters." },
  ]);
});
