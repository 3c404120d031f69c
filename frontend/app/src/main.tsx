import "@mantine/core/styles.css";
import "./layout.css";
import { MantineProvider } from "@mantine/core";
import { createRoot } from "react-dom/client";
import { Page } from "./page.tsx";
import { cssVariables, theme } from "./theme.ts";

/** The nonce of the page's content security policy, for styles. */
function styleNonce(): string {
  return document.querySelector<HTMLMetaElement>("meta[property=csp-nonce]")?.nonce ?? "";
}

// Mantine's dialogs add a style element through a library that reads its nonce from here.
Object.assign(globalThis, { __webpack_nonce__: styleNonce() });

const root = document.getElementById("page");
if (root === null) throw new Error("The page has no root element.");
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
