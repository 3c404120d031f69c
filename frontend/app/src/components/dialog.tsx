import { Modal } from "@mantine/core";
import type { ReactNode } from "react";

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A modal dialog; its header is not a banner landmark. */
export function Dialog({ title, onClose, children }: DialogProps) {
  return (
    <Modal.Root opened onClose={onClose}>
      <Modal.Overlay />
      <Modal.Content>
        <Modal.Header role="presentation">
          <Modal.Title>{title}</Modal.Title>
          <Modal.CloseButton aria-label="Close" />
        </Modal.Header>
        <Modal.Body>{children}</Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}
