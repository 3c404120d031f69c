import { Badge, type CSSVariablesResolver, createTheme, virtualColor } from "@mantine/core";

/** The kit as it comes; shades and badges are chosen so that every text has enough contrast. */
export const theme = createTheme({
  primaryShade: { light: 8, dark: 5 },
  autoContrast: true,
  // Of these two the kit asks in each scheme anew whether black or white is read on them.
  primaryColor: "accent",
  colors: {
    accent: virtualColor({ name: "accent", light: "blue", dark: "blue" }),
    danger: virtualColor({ name: "danger", light: "red", dark: "red" }),
  },
  cursorType: "pointer",
  components: {
    Badge: Badge.extend({ defaultProps: { variant: "default", tt: "none" } }),
  },
});

/** Dimmed texts and placeholders stay readable in both schemes. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "var(--mantine-color-gray-7)",
    "--mantine-color-placeholder": "var(--mantine-color-gray-7)",
    "--mantine-color-error": "var(--mantine-color-red-9)",
  },
  dark: {
    "--mantine-color-dimmed": "var(--mantine-color-dark-1)",
    "--mantine-color-placeholder": "var(--mantine-color-dark-1)",
    "--mantine-color-error": "var(--mantine-color-red-4)",
  },
});
