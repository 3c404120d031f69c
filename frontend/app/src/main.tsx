import "@mantine/core/styles.css";
import "./layout.css";
import { MantineProvider } from "@mantine/core";
import { createRoot } from "react-dom/client";
import { Page } from "./page.tsx";
import { cssVariables, theme } from "./theme.ts";

/** The nonce that this answer's policy lets styles in with. */
function styleNonce(): string {
  return document.querySelector<HTMLMetaElement>("meta[property=csp-nonce]")?.nonce ?? "";
}

// The kit's dialogs add a style while they are open, by a library that asks for its nonce here.
Object.assign(globalThis, { __webpack_nonce__: styleNonce() });

const root = document.getElementById("page");
if (root === null) throw new Error("The page has no place to be drawn in.");
createRoot(root).render(
  <MantineProvider
    theme={theme}
    cssVariablesResolver={cssVariables}
    defaultColorScheme="auto"
    getStyleNonce={styleNonce}
  >
    <Page />
  </MantineProvider>,
);
