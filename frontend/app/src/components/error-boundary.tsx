import { Component, type ReactNode } from "react";
import { Alert } from "./alert.tsx";
import { Button } from "./button.tsx";

interface ErrorBoundaryProps {
  /** One sentence that is shown in place of content that cannot be rendered. */
  readonly message: string;
  /** Shows a button that opens a new chat. */
  readonly onNewChat?: () => void;
  readonly children: ReactNode;
}

/** Shows a sentence in place of its content if a component of the content throws an error. */
export class ErrorBoundary extends Component<ErrorBoundaryProps, { readonly hasError: boolean }> {
  override state = { hasError: false };

  static getDerivedStateFromError() {
    return { hasError: true };
  }

  override render(): ReactNode {
    const { message, onNewChat, children } = this.props;
    if (!this.state.hasError) return children;
    return (
      <div className="centered">
        <Alert tone="danger" isAnnounced title={message}>
          <div className="row">
            <Button size="sm" onClick={() => location.reload()}>
              Reload
            </Button>
            {onNewChat !== undefined && (
              <Button size="sm" onClick={onNewChat}>
                New chat
              </Button>
            )}
          </div>
        </Alert>
      </div>
    );
  }
}
