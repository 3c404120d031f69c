import { screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { draw } from "../../testing/draw.tsx";
import type { VoiceView } from "./use-voice.ts";
import { VoiceButton } from "./voice-button.tsx";
import { VoicePanel } from "./voice-panel.tsx";

function voice(change: Partial<VoiceView["controls"]>, heard?: VoiceView["heard"]) {
  const controls = {
    status: "on" as const,
    isMuted: false,
    isSpeaking: false,
    error: undefined,
    start: vi.fn(async () => {}),
    stop: vi.fn(async () => {}),
    mute: vi.fn(),
    interrupt: vi.fn(),
    levels: () => ({ input: 0.5, output: 0.1 }),
    ...change,
  };
  return { controls, heard, begin: vi.fn() };
}

const panel = () => screen.queryByRole("region", { name: "Voice" });
const button = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name });

test("there is a panel only while somebody can be heard", () => {
  draw(<VoicePanel voice={voice({ status: "off" })} />);
  expect(panel()).toBeNull();
});

test.each([
  [{ status: "starting" as const }, "connecting"],
  [{}, "listening"],
  [{ isMuted: true }, "muted"],
  [{ isSpeaking: true }, "the agent speaks"],
])("it says who is heard: %o", (state, words) => {
  draw(<VoicePanel voice={voice(state)} />);
  expect(screen.getByRole("status").textContent).toBe(words);
});

test("one can be mute, interrupt and hang up", async () => {
  const user = userEvent.setup();
  const view = voice({ isSpeaking: true }, { role: "user", text: "How is\u202e the" });
  draw(<VoicePanel voice={view} />);
  expect(panel()?.textContent).toContain("You: How is");
  await user.click(button("Mute"));
  await user.click(button("Interrupt"));
  await user.click(button("Hang up"));
  expect(view.controls.mute).toHaveBeenCalledWith(true);
  expect(view.controls.interrupt).toHaveBeenCalledOnce();
  expect(view.controls.stop).toHaveBeenCalledOnce();
});

test("who is silent cannot be interrupted", () => {
  draw(<VoicePanel voice={voice({})} />);
  expect(button("Interrupt").disabled).toBe(true);
});

test("the button begins, and is gone while one speaks", async () => {
  const view = voice({ status: "off" });
  const { redraw } = draw(<VoiceButton voice={view} />);
  await userEvent.setup().click(button("Speak"));
  expect(view.begin).toHaveBeenCalledOnce();
  redraw(<VoiceButton voice={voice({})} />);
  expect(screen.queryByRole("button")).toBeNull();
});
