export { Chat } from "@ai-sdk/react";
export * from "ai";
