import { Box, Collapse, Group, Text, UnstyledButton } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { Chevron } from "./icons.tsx";

interface DisclosureProps {
  readonly label: ReactNode;
  readonly children: ReactNode;
}

/** Collapsed content with a button that expands it. */
export function Disclosure({ label, children }: DisclosureProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Box>
      <UnstyledButton aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Group gap={4} c="dimmed">
          <Box component="span" className={isOpen ? "chevron-open" : "chevron"}>
            <Chevron size={14} />
          </Box>
          <Text size="sm" component="span" inherit={false}>
            {label}
          </Text>
        </Group>
      </UnstyledButton>
      {isOpen && (
        <Collapse expanded transitionDuration={0}>
          <Box pt="xs">{children}</Box>
        </Collapse>
      )}
    </Box>
  );
}
