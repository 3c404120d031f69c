import { Badge, type CSSVariablesResolver, createTheme, virtualColor } from "@mantine/core";

/** The default theme of Mantine, with shades and badges adjusted for sufficient contrast. */
export const theme = createTheme({
  primaryShade: { light: 8, dark: 5 },
  autoContrast: true,
  // Mantine computes the contrast of virtual colours for each colour scheme.
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

/** Dimmed text and placeholders with sufficient contrast in both colour schemes. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "var(--mantine-color-gray-7)",
    "--mantine-color-placeholder": "var(--mantine-color-gray-7)",
    "--mantine-color-error": "var(--mantine-color-red-9)",
    "--mantine-color-warning": "var(--mantine-color-orange-9)",
  },
  dark: {
    "--mantine-color-dimmed": "var(--mantine-color-dark-1)",
    "--mantine-color-placeholder": "var(--mantine-color-dark-1)",
    "--mantine-color-error": "var(--mantine-color-red-4)",
    "--mantine-color-warning": "var(--mantine-color-yellow-5)",
  },
});
