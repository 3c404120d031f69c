import { screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { renderPage } from "../../testing/render.tsx";
import type { VoiceSession } from "./use-voice-transport.ts";
import { VoiceButton, VoicePanel } from "./voice-controls.tsx";

function voiceSession(
  change: Partial<VoiceSession["controls"]>,
  transcript?: VoiceSession["transcript"],
) {
  const controls = {
    status: "on" as const,
    isMuted: false,
    isReconnecting: false,
    isSpeaking: false,
    error: undefined,
    start: vi.fn(async () => {}),
    stop: vi.fn(async () => {}),
    mute: vi.fn(),
    interrupt: vi.fn(),
    levels: () => ({ input: 0.5, output: 0.1 }),
    ...change,
  };
  return { controls, transcript, start: vi.fn() };
}

const panel = () => screen.queryByRole("region", { name: "Voice" });
const button = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name });

test("the panel is hidden while the voice is off", () => {
  renderPage(<VoicePanel voice={voiceSession({ status: "off" })} hasPending={false} />);
  expect(panel()).toBeNull();
});

test.each([
  [{ status: "starting" as const }, false, "connecting"],
  [{}, false, "listening"],
  [{ isMuted: true }, false, "muted"],
  [{ isSpeaking: true }, false, "the agent speaks"],
  [{ isSpeaking: true }, true, "the agent speaks"],
  [{ isSpeaking: true, isReconnecting: true }, true, "reconnecting"],
  [{}, true, "listening, waits for your approval"],
  [{ isMuted: true }, true, "muted, waits for your approval"],
])("the panel shows the status: %o, an approval waits: %o", (state, hasPending, words) => {
  renderPage(<VoicePanel voice={voiceSession(state)} hasPending={hasPending} />);
  expect(screen.getByRole("status").textContent).toBe(words);
});

test("the panel mutes, interrupts and hangs up", async () => {
  const user = userEvent.setup();
  const session = voiceSession({ isSpeaking: true }, { role: "user", text: "How is\u202e the" });
  renderPage(<VoicePanel voice={session} hasPending={false} />);
  expect(panel()?.textContent).toContain("You: How is");
  await user.click(button("Mute"));
  await user.click(button("Interrupt"));
  await user.click(button("Hang up"));
  expect(session.controls.mute).toHaveBeenCalledWith(true);
  expect(session.controls.interrupt).toHaveBeenCalledOnce();
  expect(session.controls.stop).toHaveBeenCalledOnce();
});

test("the interrupt button is disabled while the agent is silent", () => {
  renderPage(<VoicePanel voice={voiceSession({})} hasPending={false} />);
  expect(button("Interrupt").disabled).toBe(true);
});

test("the button starts the voice and is hidden while it is on", async () => {
  const session = voiceSession({ status: "off" });
  const { rerender } = renderPage(<VoiceButton voice={session} />);
  await userEvent.setup().click(button("Speak"));
  expect(session.start).toHaveBeenCalledOnce();
  rerender(<VoiceButton voice={voiceSession({})} />);
  expect(screen.queryByRole("button")).toBeNull();
});
