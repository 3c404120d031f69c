import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { CLIENT_SOURCES } from "./client-sources.ts";

/** The playground of the documentation: the page with recordings in place of a server. */
export default defineConfig({
  root: "playground",
  publicDir: "../public",
  base: "./",
  plugins: [react()],
  resolve: CLIENT_SOURCES,
  build: {
    target: "es2023",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1200,
  },
});
