import { useEffect } from "react";
import { type Option, Select } from "./components/select.tsx";
import { useStoredText } from "./use-stored-text.ts";

type Scheme = "auto" | "light" | "dark";

const SCHEMES: readonly Option<Scheme>[] = [
  { value: "auto", label: "System colours" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

/** A control for the colour scheme, which applies it to the page. */
export function ColorSchemeSelect() {
  const [scheme, setScheme] = useStoredText("sluicegate.colours", "auto");
  useEffect(() => {
    document.documentElement.dataset.colorScheme = scheme;
  }, [scheme]);
  return (
    <Select
      aria-label="Colours"
      options={SCHEMES}
      value={SCHEMES.find(({ value }) => value === scheme)?.value ?? "auto"}
      onChange={setScheme}
    />
  );
}
