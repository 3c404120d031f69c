import "../src/page.css";
import "./playground.css";
import { useMemo, useState } from "react";
import { ChatContext } from "../src/chat/chat-context.ts";
import { Button } from "../src/components/button.tsx";
import { Thread } from "../src/thread/thread.tsx";
import { useRecordedConversation } from "./use-recorded-conversation.ts";

interface PlayedChatProps {
  readonly id: string;
  readonly onRestart: () => void;
}

function PlayedChat({ id, onRestart }: PlayedChatProps) {
  const conversation = useRecordedConversation(id);
  const { chat, requests, isBusy } = conversation;
  const context = useMemo(() => ({ ...conversation, chatId: id }), [conversation, id]);
  const isOver = chat.messages.length > 1 && !isBusy && requests.length === 0;
  return (
    <ChatContext value={context}>
      <Thread conversation={conversation} />
      <div className="playground-footer">
        <p className="text-sm dim">A recording: there is no server behind this page.</p>
        {isOver && (
          <Button size="sm" onClick={onRestart}>
            Play again
          </Button>
        )}
      </div>
    </ChatContext>
  );
}

/** The chat page with a recording in place of a server. */
export function Playground() {
  const [count, setCount] = useState(1);
  const id = `payment-${count}`;
  return (
    <main className="main">
      <PlayedChat key={id} id={id} onRestart={() => setCount(count + 1)} />
    </main>
  );
}
